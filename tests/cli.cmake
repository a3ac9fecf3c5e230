# The program from end to end: replays against numpy, and bad input.
find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3 REQUIRED)
foreach(part replay bad_input lab)
  add_test(NAME cli.${part}
           COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/${part}_test.py $<TARGET_FILE:cautious_program>)
  set_tests_properties(cli.${part} PROPERTIES LABELS fast TIMEOUT 120)
endforeach()
if(CAUTIOUS_TORCH)
  foreach(part engine train train_errors study)
    add_test(NAME cli.${part}
             COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/${part}_test.py $<TARGET_FILE:cautious_program>)
    set_tests_properties(cli.${part} PROPERTIES LABELS torch TIMEOUT 300)
  endforeach()
endif()
# These fetch small packages with the system's own clients.
foreach(part tokenizers data)
  add_test(NAME cli.${part} COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/cli/${part}_test.py
                                    $<TARGET_FILE:cautious_program> ${CMAKE_CURRENT_BINARY_DIR}/fetched)
  set_tests_properties(cli.${part} PROPERTIES LABELS fetch TIMEOUT 300)
endforeach()
