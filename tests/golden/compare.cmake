# cmake -DPYTHON=... -DSOURCE=... -DMADE=... -P compare.cmake: makes the golden vectors anew and compares.
execute_process(COMMAND ${PYTHON} -B ${SOURCE}/make_golden.py ${MADE} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} -E compare_files ${MADE} ${SOURCE}/golden.json RESULT_VARIABLE differs)
if(differs)
  message(FATAL_ERROR "${SOURCE}/golden.json is not what make_golden.py makes; compare it with ${MADE}")
endif()
