# A run's files against readers that are not ours: event files by protobuf and crcmod, the CSV by Python.
add_executable(tensorboard_write tensorboard_write.cc)
target_include_directories(tensorboard_write PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(tensorboard_write PRIVATE cautious_run)
cautious_warnings(tensorboard_write)

# Debian's packages belong to Debian's Python; another python3 earlier in PATH may have none.
find_program(CAUTIOUS_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(CAUTIOUS_PYTHON python3)
if(CAUTIOUS_PYTHON)
  add_test(NAME tensorboard_protobuf
           COMMAND ${CAUTIOUS_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/run/tensorboard_test.py $<TARGET_FILE:tensorboard_write>)
  set_tests_properties(tensorboard_protobuf PROPERTIES LABELS fast ENVIRONMENT PYTHONDONTWRITEBYTECODE=1)
else()
  message(STATUS "no python3: the test tensorboard_protobuf is left out")
endif()
