# Files against programs that are not ours: numpy's view of safetensors, fuzzers, event files by protobuf and crcmod,
# chat templates by Jinja, reports in a browser; and the golden vectors, which are what their script makes, byte by
# byte.
function(cautious_writer name source)
  add_executable(${name} ${source})
  target_include_directories(${name} PRIVATE
    ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_SOURCE_DIR}/program)
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_compile_options(${name} PRIVATE -O1)
  cautious_warnings(${name})
endfunction()
cautious_writer(safetensors_copy core/safetensors_copy.cc cautious::cautious)
cautious_writer(chat_template_write program/chat_template_write.cc cautious_data nlohmann_json::nlohmann_json)
cautious_writer(tensorboard_write program/tensorboard_write.cc cautious_study)
cautious_writer(study_sample_write program/study_sample_write.cc cautious_study fmt::fmt)
cautious_writer(slider_write lab/slider_write.cc cautious_lab fmt::fmt)

set(sample $<TARGET_FILE:cautious_program> $<TARGET_FILE:study_sample_write>)
set(pictures ${CMAKE_CURRENT_BINARY_DIR}/pictures)
cautious_script(core.safetensors_numpy fast core/safetensors_numpy.py $<TARGET_FILE:safetensors_copy>
                ${CMAKE_CURRENT_BINARY_DIR}/safetensors_numpy)
cautious_script(program.chat_template_jinja program program/chat_template_test.py $<TARGET_FILE:chat_template_write>)
cautious_script(program.tensorboard program program/tensorboard_test.py $<TARGET_FILE:tensorboard_write>)
cautious_script(program.watch program program/watch_test.py ${sample})
cautious_script(program.browser "program;browser" program/browser_test.py ${sample} ${pictures})
cautious_script(lab.slider "lab;browser" lab/slider_test.py $<TARGET_FILE:slider_write> ${pictures})

add_test(NAME golden_is_reproducible
  COMMAND ${CMAKE_COMMAND} -DPYTHON=${CAUTIOUS_PYTHON} -DSOURCE=${CMAKE_CURRENT_LIST_DIR}/golden
                           -DMADE=${CMAKE_CURRENT_BINARY_DIR}/golden.json
                           -P ${CMAKE_CURRENT_LIST_DIR}/golden/compare.cmake)
set_tests_properties(golden_is_reproducible PROPERTIES LABELS fast TIMEOUT 300)

find_program(CAUTIOUS_CLANGXX clang++ REQUIRED)
add_test(NAME fuzz COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
set_tests_properties(fuzz PROPERTIES LABELS slow TIMEOUT 600)
