# The texts of runs/*.toml as a source file, so that the program needs no path to find them.
set(plans_folder ${PROJECT_SOURCE_DIR}/runs)
file(GLOB plans CONFIGURE_DEPENDS ${plans_folder}/*.toml)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${plans})
set(bundled_entries "")
foreach(plan IN LISTS plans)
  get_filename_component(plan_name ${plan} NAME_WLE)
  file(READ ${plan} plan_text)
  string(APPEND bundled_entries "    {\"${plan_name}\", R\"plan(${plan_text})plan\"},\n")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/bundled_plans.cc @ONLY CONTENT
[=[// Made from runs/*.toml by bundled_plans.cmake.
#include "study/reproduce.h"

namespace cautious::study {

std::vector<BundledPlan> bundled_plans() {
  return {
@bundled_entries@  };
}

}  // namespace cautious::study
]=])
