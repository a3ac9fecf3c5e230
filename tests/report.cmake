# Reports in a browser, and the page of `cautious watch`.
add_executable(study_sample_write study_sample_write.cc)
target_include_directories(study_sample_write PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(study_sample_write PRIVATE cautious_study fmt::fmt)
cautious_warnings(study_sample_write)

find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3 REQUIRED)
add_test(NAME report.browser
         COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/report/browser_test.py $<TARGET_FILE:cautious_program>
                 $<TARGET_FILE:study_sample_write> ${CMAKE_CURRENT_BINARY_DIR}/report_pictures)
set_tests_properties(report.browser PROPERTIES LABELS browser TIMEOUT 300)
add_test(NAME report.watch
         COMMAND ${CAUTIOUS_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/report/watch_test.py $<TARGET_FILE:cautious_program>
                 $<TARGET_FILE:study_sample_write>)
set_tests_properties(report.watch PROPERTIES LABELS fast TIMEOUT 60)
