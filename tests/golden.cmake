# The committed golden vectors are what their script makes, byte by byte.
find_package(Python3 3.9 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME golden_is_reproducible
    COMMAND ${CMAKE_COMMAND} -DPYTHON=${Python3_EXECUTABLE} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}/golden
                             -DMADE=${CMAKE_CURRENT_BINARY_DIR}/golden.json -P ${CMAKE_CURRENT_LIST_DIR}/golden/compare.cmake)
  set_tests_properties(golden_is_reproducible PROPERTIES LABELS fast TIMEOUT 120)
else()
  message(STATUS "No Python 3: the test golden_is_reproducible is left out")
endif()
