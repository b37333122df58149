#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#ifdef FUSELAB_ASAN
#include <sanitizer/asan_interface.h>
#endif

#include "fuselab/core/error.h"
#include "fuselab/runtime/pool.h"

namespace fuselab::runtime {
namespace {

struct LimitGuard {
  std::size_t before = pool_stats().limit;
  ~LimitGuard() { set_pool_limit(before); }
};

TEST(RuntimePool, BlocksAreAlignedAndLargeEnough) {
  for (const std::size_t bytes : {0ul, 1ul, 63ul, 64ul, 65ul, 1024ul, 1025ul, 1280ul, 1281ul, 65536ul, 65537ul, (2ul << 20) - 1,
                                  2ul << 20, (5ul << 20) + 1}) {
    const StorageRef s = allocate(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->data) % 64, 0u) << bytes;
    EXPECT_GE(s->bytes, bytes);
    EXPECT_LE(s->bytes, std::max<std::size_t>(64, bytes + bytes / 4 + 64)) << bytes;  // a quarter apart
    if (bytes >= (2ul << 20)) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(s->data) % (2ul << 20), 0u) << bytes;
    }
    std::memset(s->data, 0x5a, s->bytes);
  }
}

TEST(RuntimePool, ABlockIsReused) {
  for (const std::size_t bytes : {100ul, 100'000ul, 10'000'000ul}) {
    void* first = nullptr;
    {
      const StorageRef s = allocate(bytes);
      first = s->data;
    }
    const StorageRef again = allocate(bytes);
    EXPECT_EQ(again->data, first) << bytes;
  }
}

#ifdef FUSELAB_ASAN
TEST(RuntimePool, AnIdleBlockIsForbiddenGround) {
  for (const std::size_t bytes : {100ul, 100'000ul, 10'000'000ul}) {
    StorageRef s = allocate(bytes);
    char* const data = static_cast<char*>(s->data);
    EXPECT_EQ(__asan_region_is_poisoned(data, s->bytes), nullptr) << bytes;
    s.reset();
    EXPECT_TRUE(__asan_address_is_poisoned(data) && __asan_address_is_poisoned(data + bytes - 1)) << bytes;
    s = allocate(bytes);
    ASSERT_EQ(s->data, data);
    EXPECT_EQ(__asan_region_is_poisoned(data, s->bytes), nullptr) << bytes;
  }
}
#endif

TEST(RuntimePool, AReferenceKeepsABlock) {
  StorageRef a = allocate(1000);
  StorageRef b = a;
  void* const data = a->data;
  a.reset();
  const StorageRef other = allocate(1000);
  EXPECT_NE(other->data, data);
  EXPECT_EQ(b->data, data);
}

TEST(RuntimePool, IdleBlocksStayUnderTheLimit) {
  const LimitGuard guard;
  empty_pool();
  const std::size_t base = pool_stats().mapped;
  set_pool_limit(base + (8u << 20));
  {
    std::vector<StorageRef> many;
    for (int i = 0; i < 16; ++i) many.push_back(allocate(4u << 20));  // 64 MB in use: the limit does not refuse work
    EXPECT_GE(pool_stats().mapped, base + (64u << 20));
  }
  EXPECT_LE(pool_stats().mapped, base + (8u << 20));
  empty_pool();
  EXPECT_EQ(pool_stats().idle, 0u);
}

TEST(RuntimePool, ImpossibleSizesAreAnError) {
  for (const std::size_t bytes : {std::size_t{1} << 45, std::size_t{1} << 47, ~std::size_t{0}}) {
    try {
      allocate(bytes);
      FAIL() << bytes;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "runtime.out_of_memory");
    }
  }
}

TEST(RuntimePool, ThreadsFreeEachOthersBlocks) {
  // Blocks made by one thread, written, checked and dropped by another.
  constexpr int kThreads = 4, kRounds = 500;
  std::vector<std::vector<StorageRef>> made(kThreads);
  for (int round = 0; round < 3; ++round) {
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([t, &made] {
        std::mt19937 random(static_cast<unsigned>(t));
        for (int i = 0; i < kRounds; ++i) {
          StorageRef s = allocate(random() % 200'000);
          std::memset(s->data, t, std::min<std::size_t>(s->bytes, 256));
          if (i % 3 == 0) made[t].push_back(std::move(s));
        }
      });
    for (auto& t : threads) t.join();
    threads.clear();
    for (int t = 0; t < kThreads; ++t)
      threads.emplace_back([owner = t, &list = made[(t + 1) % kThreads]] {
        for (StorageRef& s : list) {
          EXPECT_EQ(static_cast<unsigned char*>(s->data)[0], (owner + 1) % kThreads);
          s.reset();
        }
        list.clear();
      });
    for (auto& t : threads) t.join();
  }
  empty_pool();
}

TEST(RuntimePool, AForkedChildGoesOn) {
  const StorageRef before = allocate(100'000);
  std::memset(before->data, 7, 100);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    bool ok = static_cast<char*>(before->data)[99] == 7;
    for (int i = 0; i < 100; ++i) ok = ok && allocate(static_cast<std::size_t>(i) * 10'000)->data != nullptr;
    empty_pool();
    _exit(ok ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace
}  // namespace fuselab::runtime
