# The library as others meet it: the README's example, the installed package, a rule and a decay added by a
# stranger; and the core again under the sanitizers, each in its own build directory below this one.
foreach(name ten_lines ten_lines_c)
  add_test(NAME example.${name} COMMAND example_${name})
  set_tests_properties(example.${name} PROPERTIES LABELS fast PASS_REGULAR_EXPRESSION "step 300  x0 1\\.00")
endforeach()
add_test(NAME example.muon COMMAND example_muon)
set_tests_properties(example.muon PROPERTIES LABELS fast
  PASS_REGULAR_EXPRESSION "embedding +-> rest.*step 20  decayed:  matrices 0\\.8[0-9]  rest 0\\.6[0-9]  vectors 0\\.00")
if(CAUTIOUS_TORCH)
  add_test(NAME example.torch_swap COMMAND example_torch_swap)
  set_tests_properties(example.torch_swap PROPERTIES LABELS torch PASS_REGULAR_EXPRESSION "step 200  loss 0\\.0")
endif()

# The list of what is linked; every library of the loader's belongs to a package with a version.
find_program(CAUTIOUS_DPKG dpkg-query)
if(CAUTIOUS_DPKG)
  add_test(NAME sbom COMMAND ${CAUTIOUS_PYTHON} -B ${PROJECT_SOURCE_DIR}/cmake/sbom.py ${PROJECT_VERSION}
    $<TARGET_FILE:cautious_program>)
  set_tests_properties(sbom PROPERTIES LABELS fast FAIL_REGULAR_EXPRESSION "\"version\": \"\"")
endif()

if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(scripts ${PROJECT_SOURCE_DIR}/tests)
  add_test(NAME installed_consumer
    COMMAND bash ${scripts}/consumer/run.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR} ${PROJECT_BINARY_DIR}/consumer)
  set(torch OFF)
  set(cuda OFF)
  if(CAUTIOUS_TORCH)
    set(torch ON)
    if(CAUTIOUS_NVCC)
      set(cuda ON)
    endif()
  endif()
  set(python "")
  if(CAUTIOUS_PYTHON_PACKAGE)
    set(python ${CAUTIOUS_PYTHON})
  endif()
  add_test(NAME extend
    COMMAND bash ${scripts}/extend/run.sh ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/extend ${torch} ${cuda} ${python})
  # Everything that walks buffers or reads files; and everything that starts threads.
  foreach(preset asan tsan)
    add_test(NAME ${preset}
      COMMAND bash ${scripts}/sanitized.sh ${preset} ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR}/${preset})
  endforeach()
  set_tests_properties(installed_consumer extend asan tsan PROPERTIES LABELS slow TIMEOUT 1800)
  # The longest first, so that they do not end alone.
  set_tests_properties(asan tsan extend installed_consumer PROPERTIES COST 1000)
endif()
