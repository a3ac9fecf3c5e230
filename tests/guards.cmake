# Guards: what reviewers would otherwise have to look for. Each is one script, tests/guards/<name>.py.
function(cautious_guard name script)
  add_test(NAME guard.${name} COMMAND ${CAUTIOUS_PYTHON} -B
    ${PROJECT_SOURCE_DIR}/tests/guards/${script}.py ${PROJECT_SOURCE_DIR} ${ARGN})
  set_tests_properties(guard.${name} PROPERTIES LABELS "fast;guard")
endfunction()

cautious_guard(includes includes)
cautious_guard(clients clients)
if(CAUTIOUS_TORCH)
  find_package(Torch REQUIRED)
endif()
cautious_guard(headers headers ${CMAKE_CXX_COMPILER} ${TORCH_INCLUDE_DIRS})
cautious_guard(one_place one_place)
cautious_guard(text text)

if(TARGET cautious_kernels_avx2)
  foreach(isa portable avx2)
    cautious_guard(symbols_${isa} symbols ${isa} $<TARGET_OBJECTS:cautious_kernels_${isa}>)
  endforeach()
  # The compiler in use, and clang where it is another one.
  set(flags $<TARGET_PROPERTY:cautious_kernels_avx2,COMPILE_OPTIONS>)
  cautious_guard(vectorized vectorized "$<JOIN:${flags}, >" ${CMAKE_CXX_COMPILER})
  find_program(CAUTIOUS_CLANGXX clang++)
  if(CAUTIOUS_CLANGXX AND NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    cautious_guard(vectorized_clang vectorized "$<JOIN:$<FILTER:${flags},EXCLUDE,thread-jumps>, >" ${CAUTIOUS_CLANGXX})
  endif()
endif()
