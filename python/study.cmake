# The module cautious._study: studies without libtorch, for cautious.compare. Included by python/CMakeLists.txt, which
# finds Python and pybind11 and puts the package together in <build>/python.

# A module is a shared library, and so is all that it is made of.
set_target_properties(cautious_base cautious_data cautious_model_config cautious_run cautious_report cautious_study
  PROPERTIES POSITION_INDEPENDENT_CODE ON)
Python3_add_library(cautious_study_python MODULE WITH_SOABI ${PROJECT_SOURCE_DIR}/python/src/study.cc)
set_target_properties(cautious_study_python PROPERTIES
  OUTPUT_NAME _study LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/cautious CXX_VISIBILITY_PRESET hidden)
target_link_libraries(cautious_study_python PRIVATE cautious_study pybind11::headers)
target_link_options(cautious_study_python PRIVATE -Wl,--exclude-libs,ALL)
cautious_warnings(cautious_study_python)
