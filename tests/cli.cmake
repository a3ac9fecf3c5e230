# The programs from end to end: replays against numpy, training, studies, the laboratory, bad input.
foreach(part replay bad_input values command workers)
  cautious_script(cli.${part} fast cli/${part}_test.py $<TARGET_FILE:cautious_program>)
endforeach()
cautious_script(cli.manual program cli/manual_test.py $<TARGET_FILE:cautious_program>)
cautious_script(cli.lab lab cli/lab_test.py $<TARGET_FILE:cautious_program>)
if(CAUTIOUS_TORCH)
  foreach(part train_program train train_errors reliability log_command launch ranks device import finetune export image
          study eval)
    cautious_script(cli.${part} torch cli/${part}_test.py $<TARGET_FILE:cautious_program>)
  endforeach()
endif()
# These fetch small packages with the system's own clients.
foreach(part tokenizers data)
  cautious_script(cli.${part} fetch cli/${part}_test.py
                  $<TARGET_FILE:cautious_program> ${CMAKE_CURRENT_BINARY_DIR}/fetched)
endforeach()
