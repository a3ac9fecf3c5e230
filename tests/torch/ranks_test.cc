// Where a rank stands, how ranks meet, and that what they exchange arrives; ranks are threads here, each with a world of its
// own.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <map>
#include <thread>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "ranks/board.h"
#include "ranks/place.h"
#include "ranks/wire.h"
#include "ranks/world.h"
#include "usage_message.h"

namespace ranks_test {

using namespace cautious;
using Variables = std::map<std::string, std::string>;

ranks::Place place(const Variables& variables) {
  return ranks::find_place([&](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::nullopt : std::optional(found->second);
  });
}

TEST(Place, WithoutAnyVariableAProcessIsAlone) {
  EXPECT_EQ(place({}).ranks, 1);
  EXPECT_EQ(place({{"WORLD_SIZE", "1"}, {"RANK", "0"}}).ranks, 1);
  EXPECT_EQ(place({{"SLURM_JOB_ID", "7"}, {"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}}).ranks, 1) << "a batch script";
}

TEST(Place, OfTorchrun) {
  const ranks::Place found = place({{"RANK", "3"},
                                    {"WORLD_SIZE", "4"},
                                    {"LOCAL_RANK", "1"},
                                    {"LOCAL_WORLD_SIZE", "2"},
                                    {"MASTER_ADDR", "node7"},
                                    {"MASTER_PORT", "29500"},
                                    {"SLURM_STEP_NUM_TASKS", "9"}});
  EXPECT_EQ(found.rank, 3);
  EXPECT_EQ(found.ranks, 4);
  EXPECT_EQ(found.local_rank, 1);
  EXPECT_EQ(found.local_ranks, 2);
  EXPECT_EQ(found.address, "node7");
  EXPECT_EQ(found.port, 29500);
}

TEST(Place, OfSlurm) {
  Variables slurm{{"SLURM_STEP_NUM_TASKS", "6"},        {"SLURM_PROCID", "5"},      {"SLURM_LOCALID", "2"},
                  {"SLURM_NTASKS_PER_NODE", "3"},       {"SLURM_JOB_ID", "123456"}, {"SLURM_STEP_ID", "2"},
                  {"SLURM_STEP_NODELIST", "gpu[03-04]"}};
  const ranks::Place found = place(slurm);
  EXPECT_EQ(found.rank, 5);
  EXPECT_EQ(found.ranks, 6);
  EXPECT_EQ(found.local_rank, 2);
  EXPECT_EQ(found.address, "gpu03");
  EXPECT_EQ(found.port, 20000 + 123458 % 10000);
  slurm["MASTER_ADDR"] = "10.0.0.1";
  slurm["MASTER_PORT"] = "4000";
  EXPECT_EQ(place(slurm).address, "10.0.0.1");
  EXPECT_EQ(place(slurm).port, 4000);
}

TEST(Place, TheFirstHostOfSlurmsShortForm) {
  EXPECT_EQ(ranks::first_host("node1"), "node1");
  EXPECT_EQ(ranks::first_host("a,b"), "a");
  EXPECT_EQ(ranks::first_host("node[03-06,9],other"), "node03");
  EXPECT_EQ(ranks::first_host("node[7,9]-ib.cluster,other"), "node7-ib.cluster");
  EXPECT_THROW(ranks::first_host("node[03"), Error);
}

TEST(Place, WhatIsMissingOrWrongIsNamed) {
  EXPECT_NE(message([] { place({{"RANK", "1"}}); }).find("RANK but not WORLD_SIZE"), std::string::npos);
  EXPECT_NE(message([] { place({{"RANK", "0"}, {"WORLD_SIZE", "2"}}); }).find("not MASTER_ADDR"), std::string::npos);
  EXPECT_NE(message([] { place({{"RANK", "2"}, {"WORLD_SIZE", "2"}}); }).find("valid: [0, 1]"), std::string::npos);
  EXPECT_NE(message([] {
              place({{"RANK", "0"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}});
            }).find("MASTER_PORT"),
            std::string::npos);
}

std::uint16_t free_port() {
  const int probe = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  bind(probe, reinterpret_cast<sockaddr*>(&address), length);
  getsockname(probe, reinterpret_cast<sockaddr*>(&address), &length);
  close(probe);
  return ntohs(address.sin_port);
}

// body(world) of every rank, each on a thread of its own.
template <class Body>
void meet(int count, const Body& body) {
  const std::uint16_t port = free_port();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      ranks::World world({.rank = rank, .ranks = count, .address = "127.0.0.1", .port = port}, std::chrono::seconds(20));
      body(world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(World, AloneNeedsNobody) {
  ranks::World world;
  world.agree("anything", "text");
  EXPECT_EQ(world.gather(7), std::vector<int>{7});
  EXPECT_EQ(world.traffic().bytes, 0);
}

TEST(World, EveryPieceIsItsOwnersEverywhere) {
  for (const int count : {2, 3}) {
    meet(count, [&](ranks::World& world) {
      // Pieces of all sizes, some larger than what travels at once, in an order that has nothing to do with their owners.
      const std::vector<std::size_t> sizes{1, 0, 9'000'001, 17, 4096, 20'000'000, 3};
      std::vector<std::vector<unsigned char>> data;
      std::vector<Piece> pieces;
      const auto value = [](std::size_t piece, std::size_t i) { return static_cast<unsigned char>(31 * piece + i % 251); };
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        const int owner = static_cast<int>((5 * k + 2) % static_cast<std::size_t>(count));
        data.emplace_back(sizes[k], static_cast<unsigned char>(0xee));
        for (std::size_t i = 0; owner == world.rank() && i < sizes[k]; ++i) data[k][i] = value(k, i);
        pieces.push_back({owner, data[k].data(), sizes[k]});
      }
      world.exchange(pieces);
      for (std::size_t k = 0; k < sizes.size(); ++k) {
        std::size_t wrong = 0;
        for (std::size_t i = 0; i < sizes[k]; ++i) wrong += data[k][i] != value(k, i) ? 1 : 0;
        EXPECT_EQ(wrong, 0U) << "piece " << k << " in rank " << world.rank();
      }
      EXPECT_EQ(world.gather(10 * world.rank()).back(), 10 * (count - 1));
      EXPECT_GT(world.traffic().bytes, 0);
    });
  }
}

// As on GPUs, where NCCL carries them.
TEST(World, EveryTensorIsItsOwnersEverywhere) {
  meet(3, [](ranks::World& world) {
    ASSERT_EQ(world.travels_on(at::kCPU), at::Device(at::kCPU));
    ASSERT_EQ(world.travels_on(at::kLazy), at::Device(at::kCPU));
    const auto value = [](int owner, at::ScalarType type, at::IntArrayRef shape) {
      return at::arange(at::empty(shape).numel()).add(100 * owner + 1).to(type).view(shape);
    };
    std::vector<at::Tensor> tensors, wanted;
    std::vector<int> owners;
    for (const at::ScalarType type : {at::kFloat, at::kBFloat16, at::kLong}) {
      for (const std::vector<std::int64_t>& shape : {std::vector<std::int64_t>{}, {7}, {30, 40}, {0, 3}}) {
        owners.push_back(static_cast<int>(tensors.size()) % 3);
        wanted.push_back(value(owners.back(), type, shape));
        tensors.push_back(owners.back() == world.rank() ? wanted.back().clone() : at::zeros_like(wanted.back()));
      }
    }
    world.exchange(tensors, owners);
    for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(at::equal(tensors[i], wanted[i])) << i << world.rank();
  });
}

TEST(World, WhoDisagreesIsNamedEverywhere) {
  std::mutex mutex;
  std::vector<std::string> said;
  meet(2, [&](ranks::World& world) {
    try {
      world.agree("configuration", world.first() ? "a = 1\nb = 2\n" : "a = 1\nb = 3\n");
      ADD_FAILURE() << "rank " << world.rank() << " agreed";
    } catch (const Error& error) {
      world.fail(error.what());
      const std::lock_guard lock(mutex);
      said.emplace_back(error.what());
    }
  });
  ASSERT_EQ(said.size(), 2U);
  for (const std::string& line : said) {
    EXPECT_NE(line.find("rank 1 has another configuration than rank 0: 'b = 3', rank 0 has 'b = 2'"), std::string::npos)
        << line;
  }
}

// Whoever else knocks is ignored: port scanners, browsers, other programs.
TEST(Board, StrangersDoNotDisturb) {
  const std::uint16_t port = free_port();
  const auto join = [&](int rank) {
    return std::make_unique<ranks::Board>(ranks::Place{.rank = rank, .ranks = 2, .address = "127.0.0.1", .port = port},
                                          std::chrono::seconds(20));
  };
  std::thread first([&] {
    const auto board = join(0);
    board->set("name", "value");
    EXPECT_EQ(board->get("reply"), "yes");
  });
  std::vector<int> strangers;
  for (const std::string& text : {std::string("GET / HTTP/1.1\r\n\r\n"), std::string(100000, '\xff'),
                                  std::string("cautious rank"), std::string(ranks::kGreeting) + std::string(20, '\xff')}) {
    int stranger = -1;
    while ((stranger = ranks::connect_to("127.0.0.1", port)) < 0) std::this_thread::yield();
    ::send(stranger, text.data(), text.size(), MSG_NOSIGNAL);
    strangers.push_back(stranger);
  }
  {
    const auto board = join(1);
    EXPECT_EQ(board->get("name"), "value");
    EXPECT_EQ(board->trouble(), "");
    board->set("reply", "yes");
  }
  first.join();
  for (const int stranger : strangers) close(stranger);
}

}  // namespace ranks_test
