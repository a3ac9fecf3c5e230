# The laboratory: its tests link it, and the program's `lab toy` is run from end to end.
foreach(name toy_test plane_figure_test chart_test interval_chart_test)
  target_link_libraries(${name} PRIVATE cautious_lab)
endforeach()
find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3 REQUIRED)
add_test(NAME cli.lab_toy
         COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/lab/toy_cli_test.py $<TARGET_FILE:cautious_program>)
set_tests_properties(cli.lab_toy PROPERTIES LABELS fast TIMEOUT 60)
