# Warnings for our own targets only: cautious_warnings(target...).
function(cautious_warnings)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
    if(CAUTIOUS_DEVELOPER)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endforeach()
endfunction()
