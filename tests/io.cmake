# File formats against programs that are not ours: numpy's view of safetensors, and a fuzzer.
add_executable(safetensors_copy safetensors_copy.cc)
target_include_directories(safetensors_copy PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(safetensors_copy PRIVATE cautious::cautious)
cautious_warnings(safetensors_copy)

# Debian's numpy belongs to Debian's Python; another python3 earlier in PATH may have none.
find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3)
if(CAUTIOUS_PYTHON)
  add_test(NAME safetensors_numpy
           COMMAND ${CAUTIOUS_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/safetensors_numpy.py $<TARGET_FILE:safetensors_copy>
                   ${CMAKE_CURRENT_BINARY_DIR}/safetensors_numpy)
  set_tests_properties(safetensors_numpy PROPERTIES LABELS fast ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
else()
  message(STATUS "no python3: the test safetensors_numpy is left out")
endif()

find_program(CAUTIOUS_CLANGXX clang++)
if(CAUTIOUS_CLANGXX)
  add_test(NAME safetensors_fuzz
           COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/run.sh ${CMAKE_CURRENT_BINARY_DIR}/safetensors_fuzz)
  set_tests_properties(safetensors_fuzz PROPERTIES LABELS slow TIMEOUT 300)
else()
  message(STATUS "no clang++ (package clang): the test safetensors_fuzz is left out")
endif()
