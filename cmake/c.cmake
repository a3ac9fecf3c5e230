# Programs in C, for tests and examples of the C interface: cautious_c_program(target).
enable_language(C)

function(cautious_c_program target)
  set_target_properties(${target} PROPERTIES C_STANDARD 99 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  if(CMAKE_CXX_FLAGS MATCHES "-fsanitize")  # the C compiler does not link the sanitizers' C++ parts
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  cautious_warnings(${target})
endfunction()
