# A room is a folder, the namespace cautious::<room> and the static library cautious_<room>. SOURCES are all .cc files
# below this folder by default; BATCH of them are compiled as one, 20 by default. Rooms are compiled with -O1, in two
# thirds of the time of -O2, except for those that are HOT.
#   cautious_room(name [HOT] [BATCH count] [SOURCES file...] [PUBLIC target...] [PRIVATE target...])
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)

function(cautious_room name)
  cmake_parse_arguments(room "HOT" "BATCH" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(NOT room_SOURCES)
    file(GLOB_RECURSE room_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  if(NOT room_BATCH)
    set(room_BATCH 20)
  endif()
  add_library(cautious_${name} STATIC ${room_SOURCES})
  set_target_properties(cautious_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${room_BATCH})
  target_include_directories(cautious_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(cautious_${name}
    PUBLIC ${room_PUBLIC} PRIVATE fmt::fmt nlohmann_json::nlohmann_json ${room_PRIVATE})
  if(NOT room_HOT)
    target_compile_options(cautious_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  cautious_warnings(cautious_${name})
endfunction()
