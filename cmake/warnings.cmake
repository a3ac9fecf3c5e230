# Warnings for our own targets only: cautious_warnings(target...).
function(cautious_warnings)
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion)
    if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # takes the files of a batch for headers
      target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
    endif()
    if(CAUTIOUS_DEVELOPER)
      target_compile_options(${target} PRIVATE -Werror)
    endif()
  endforeach()
endfunction()
