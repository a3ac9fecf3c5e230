# The C interface as programs in C99 use it, through libcautious.so. c.steps compares it with the archive, so the shared
# library comes first: GNU's linker then takes its functions, where mold would take the archive's.
cautious_tests(c LABEL fast BATCH 7 LEVEL -O1 LIBRARIES cautious::c cautious::cautious ${CMAKE_DL_LIBS})
if(TARGET c_test)
  target_sources(c_test PRIVATE c/steps.c)
  target_link_options(c_test PRIVATE -fuse-ld=bfd)
endif()
find_package(Threads REQUIRED)
set(tsan "ignore_noninstrumented_modules=1 halt_on_error=1 allocator_may_return_null=1")
foreach(name errors use)
  add_executable(c_${name} c/${name}.c)
  target_include_directories(c_${name} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_link_libraries(c_${name} PRIVATE cautious::c Threads::Threads m)
  cautious_c_program(c_${name})
  add_test(NAME c.${name} COMMAND c_${name} ${CMAKE_CURRENT_BINARY_DIR}/c_${name}.state)
  # An allocation that cannot succeed is one of the errors.
  set_tests_properties(c.${name} PROPERTIES LABELS fast
    ENVIRONMENT
    "OMP_WAIT_POLICY=passive;ASAN_OPTIONS=allocator_may_return_null=1;TSAN_OPTIONS=${tsan}")
endforeach()
