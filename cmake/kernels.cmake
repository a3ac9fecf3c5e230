# Compiles src/kernels/kernels.cc once per instruction set, into namespace cautious::<isa>. A further one is
# a word and its flags.
set(isas portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND isas avx2)
  set(flags_avx2 -march=x86-64-v3 -mtune=generic)
endif()

# GCC's jump threading tears the mask's two comparisons into branches before the vectorizer sees them.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND exact -fno-thread-jumps -funroll-loops)
endif()

foreach(isa IN LISTS isas)
  add_library(cautious_kernels_${isa} OBJECT ${PROJECT_SOURCE_DIR}/src/kernels/kernels.cc)
  target_compile_features(cautious_kernels_${isa} PRIVATE cxx_std_20)
  target_include_directories(cautious_kernels_${isa} PRIVATE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_definitions(cautious_kernels_${isa} PRIVATE CAUTIOUS_ISA=${isa})
  target_compile_options(cautious_kernels_${isa} PRIVATE ${exact} ${flags_${isa}})
  set_target_properties(cautious_kernels_${isa} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  cautious_warnings(cautious_kernels_${isa})
  target_sources(cautious PRIVATE $<TARGET_OBJECTS:cautious_kernels_${isa}>)
  string(TOUPPER ${isa} upper)
  target_compile_definitions(cautious PRIVATE CAUTIOUS_HAS_${upper})
endforeach()
