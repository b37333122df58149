#include "fuselab/core/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace fuselab {
namespace {

TEST(Threads, EveryUnitOnce) {
  for (std::int64_t units : {0, 1, 2, 3, 7, 1000}) {
    for (int threads : {1, 2, 3, 8}) {
      set_max_threads(threads);
      std::vector<std::atomic<int>> hits(units);
      std::atomic<int> bad_thread = 0;
      parallel_for(units, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
        if (thread < 0 || thread >= threads) ++bad_thread;
        for (std::int64_t i = begin; i < end; ++i) ++hits[i];
      });
      EXPECT_EQ(bad_thread, 0);
      for (const auto& h : hits) EXPECT_EQ(h, 1);
    }
  }
}

TEST(Threads, CountFollowsWork) {
  EXPECT_EQ(threads_for(0, 1, 8), 1);
  EXPECT_EQ(threads_for(100, 1, 8), 8);
  EXPECT_EQ(threads_for(100, 50, 8), 2);
  EXPECT_EQ(threads_for(100, 101, 8), 1);
  EXPECT_EQ(threads_for(100, 0, 8), 8);
  EXPECT_EQ(threads_for(INT64_MAX, 1, 4), 4);
}

TEST(Threads, ExceptionReachesTheCaller) {
  set_max_threads(2);
  EXPECT_THROW(parallel_for(10, 1, [](std::int64_t, std::int64_t, int) { throw std::runtime_error("x"); }), std::runtime_error);
  int after = 0;
  parallel_for(1, 1, [&](std::int64_t, std::int64_t, int) { ++after; });
  EXPECT_EQ(after, 1);
}

TEST(Threads, NestedRunsOnTheCaller) {
  set_max_threads(2);
  std::atomic<std::int64_t> sum = 0;
  parallel_for(2, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      parallel_for(100, 1, [&](std::int64_t b, std::int64_t e, int thread) {
        if (thread == 0) sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 200);
}

TEST(Threads, CountIsRemembered) {
  set_max_threads(3);
  EXPECT_EQ(max_threads(), thread_library().empty() ? 1 : 3);
  set_max_threads(0);
  EXPECT_EQ(max_threads(), 1);
  set_max_threads(2);
}

#ifndef FUSELAB_TSAN
// A child forked after the pool has run must neither hang nor lose work; nor must the parent afterwards.
TEST(Threads, WorkAfterFork) {
  set_max_threads(2);
  const auto work = [] {
    std::atomic<std::int64_t> sum = 0;
    parallel_for(64, 1, [&](std::int64_t begin, std::int64_t end, int) { sum += end - begin; });
    return sum == 64;
  };
  ASSERT_TRUE(work());
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work() ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_TRUE(work());
}
#endif

}  // namespace
}  // namespace fuselab
