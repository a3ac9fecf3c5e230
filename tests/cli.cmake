# The program from end to end: replays against numpy, and bad input.
find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3 REQUIRED)
foreach(part replay bad_input)
  add_test(NAME cli.${part}
           COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/${part}_test.py $<TARGET_FILE:cautious_program>)
  set_tests_properties(cli.${part} PROPERTIES LABELS fast TIMEOUT 120)
endforeach()
if(CAUTIOUS_TORCH)
  add_test(NAME cli.engine
           COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/engine_test.py $<TARGET_FILE:cautious_program>)
  set_tests_properties(cli.engine PROPERTIES LABELS torch TIMEOUT 300)
endif()
