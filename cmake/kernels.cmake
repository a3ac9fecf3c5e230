# Compiles src/kernels/kernels.cc once per instruction set, into namespace cautious::<isa>. A further one is
# a word and its flags.
set(isas portable)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND isas avx2 avx512)
  set(flags_avx2 -march=x86-64-v3 -mtune=generic)
  set(flags_avx512 -march=x86-64-v4 -mtune=generic)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # A few registers in a struct are moved one by one, not by a string instruction that takes 30 cycles to start.
    foreach(isa avx2 avx512)
      list(APPEND flags_${isa} -mmemcpy-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign
                               -mmemset-strategy=unrolled_loop:1024:noalign,libcall:-1:noalign)
    endforeach()
    # GCC's header leaves lanes that nobody reads uninitialized.
    list(APPEND flags_avx512 -Wno-uninitialized -Wno-maybe-uninitialized)
  endif()
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND isas neon)
  set(flags_neon -DCAUTIOUS_NEON)
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
