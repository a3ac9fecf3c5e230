# The Python package, by Debian's Python: tests/python/test_<topic>.py is the test python.<topic>.
if(CAUTIOUS_PYTHON_PACKAGE)
  file(GLOB python_tests CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/python/test_*.py)
  foreach(file IN LISTS python_tests)
    get_filename_component(topic ${file} NAME_WE)
    string(REGEX REPLACE "^test_" "" topic ${topic})
    add_test(NAME python.${topic} COMMAND ${CAUTIOUS_PYTHON} -B ${file})
    set(environment PYTHONPATH=${PROJECT_BINARY_DIR}/python CAUTIOUS_PROGRAM=$<TARGET_FILE:cautious_program>
                    ${CAUTIOUS_TEST_ENVIRONMENT})
    set_tests_properties(python.${topic} PROPERTIES LABELS python TIMEOUT 900 ENVIRONMENT "${environment}")
  endforeach()
endif()
