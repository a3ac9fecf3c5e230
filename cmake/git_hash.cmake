# Writes OUTPUT, a header with the commit of SOURCE, and only if that changed. Run at every build:
#   cmake -DSOURCE= -DOUTPUT= -P git_hash.cmake
set(hash unknown)
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
if(NOT failed)
  set(hash ${found})
endif()
set(text "#define CAUTIOUS_GIT \"${hash}\"\n")
if(EXISTS ${OUTPUT})
  file(READ ${OUTPUT} old)
endif()
if(NOT text STREQUAL "${old}")
  file(WRITE ${OUTPUT} ${text})
endif()
