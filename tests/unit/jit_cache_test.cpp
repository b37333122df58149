// The kernel cache: hits, damage of every kind, writers that race or die, folders that cannot be used.
#include "fuselab/jit/cache.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <random>
#include <set>
#include <thread>

#include "fuselab/core/error.h"
#include "jit_support.h"

namespace fuselab::jit {
namespace {

namespace fs = std::filesystem;
using testing::lane_kernel;
using testing::read_file;
using testing::TempFolder;
using testing::Variable;
using testing::Warnings;
using testing::write_file;

std::vector<char> bytes(const std::string& text) { return {text.begin(), text.end()}; }

std::string only_file(const std::string& folder) {
  std::string found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) {
      EXPECT_TRUE(found.empty()) << "more than one file: " << entry.path();
      found = entry.path().string();
    }
  }
  return found;
}

/// A key that no other test (and no earlier warning) has used.
std::string fresh_key() {
  static int counter = 0;
  return cache_key("key " + std::to_string(++counter), {"generic"});
}

TEST(Cache, KeepsAndFinds) {
  TempFolder folder;
  const Cache cache(folder.path() + "/made/when/needed");
  const std::string key = fresh_key();
  EXPECT_FALSE(cache.get(key));
  cache.put(key, bytes("object code"));
  EXPECT_EQ(*cache.get(key), bytes("object code"));
  EXPECT_FALSE(cache.get(fresh_key()));
  cache.put(key, bytes("newer"));
  EXPECT_EQ(*cache.get(key), bytes("newer"));
  cache.put(key, {});
  EXPECT_EQ(cache.get(key)->size(), 0u);
}

TEST(Cache, KeyHoldsTextAndTarget) {
  EXPECT_EQ(cache_key("a", {"avx2"}), cache_key("a", {"avx2"}));
  EXPECT_EQ(cache_key("a", {"avx2"}).size(), 32u);
  std::set<std::string> keys;
  for (const char* text : {"a", "b", "a ", ""}) {
    for (const char* isa : {"avx512", "avx2", "generic"}) keys.insert(cache_key(text, {isa}));
  }
  EXPECT_EQ(keys.size(), 12u);
}

TEST(Cache, FolderFromTheEnvironment) {
  {
    Variable a("FUSELAB_CACHE_DIR", "/a");
    EXPECT_EQ(Cache::default_folder(), "/a");
  }
  Variable none("FUSELAB_CACHE_DIR", nullptr);
  Variable home("HOME", "/h");
  {
    Variable xdg("XDG_CACHE_HOME", "/x");
    EXPECT_EQ(Cache::default_folder(), "/x/fuselab");
  }
  Variable xdg("XDG_CACHE_HOME", nullptr);
  EXPECT_EQ(Cache::default_folder(), "/h/.cache/fuselab");
  Variable homeless("HOME", nullptr);
  EXPECT_EQ(Cache::default_folder(), "");
  const Cache cache("");
  cache.put(fresh_key(), bytes("x"));
  EXPECT_FALSE(cache.get(fresh_key()));
  EXPECT_TRUE(cache.list().empty());
  EXPECT_EQ(cache.clear(), 0);
}

// Every byte of an entry changed, and every length it could be cut to: never used, one warning, removed, then fine again.
TEST(Cache, AnyDamageIsSeen) {
  TempFolder folder;
  const Cache cache(folder.path());
  const std::string key = fresh_key();
  cache.put(key, bytes("0123456789abcdef"));
  const std::string path = only_file(folder.path());
  const std::string good = read_file(path);
  Warnings warnings;
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] ^= 1 << (i % 8);
    write_file(path, bad);
    EXPECT_FALSE(cache.get(key)) << "byte " << i;
    EXPECT_FALSE(fs::exists(path));
  }
  for (std::size_t size = 0; size < good.size(); ++size) {
    write_file(path, good.substr(0, size));
    EXPECT_FALSE(cache.get(key)) << "cut to " << size;
  }
  write_file(path, good + "x");
  EXPECT_FALSE(cache.get(key));
  EXPECT_EQ(warnings.codes, std::vector<std::string>{"cache.damaged"});  // once per entry, not once per read
  write_file(path, good);
  EXPECT_EQ(*cache.get(key), bytes("0123456789abcdef"));
}

TEST(Cache, FolderOrForeignEntryInTheWay) {
  TempFolder folder;
  const Cache cache(folder.path());
  const std::string key = fresh_key(), other = fresh_key();
  cache.put(key, bytes("x"));
  const std::string path = only_file(folder.path());
  Warnings warnings;
  // Another key's entry under this name.
  cache.put(other, bytes("y"));
  const std::string theirs = folder.path() + "/" + other.substr(0, 2) + "/" + other + ".flk";
  fs::copy_file(theirs, path, fs::copy_options::overwrite_existing);
  EXPECT_FALSE(cache.get(key));
  fs::create_directories(path + "/sub");
  EXPECT_FALSE(cache.get(key));
  cache.put(key, bytes("z"));
  EXPECT_EQ(*cache.get(key), bytes("z"));
}

TEST(Cache, ListVerifyClear) {
  TempFolder folder;
  const Cache cache(folder.path());
  EXPECT_TRUE(Cache(folder.path() + "/none").list().empty());
  std::vector<std::string> keys;
  for (int i = 0; i < 5; ++i) keys.push_back(fresh_key()), cache.put(keys.back(), bytes(std::string(100 * i, 'x')));
  std::sort(keys.begin(), keys.end());
  const auto entries = cache.list();
  ASSERT_EQ(entries.size(), 5u);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(entries[i].key, keys[i]);

  const std::string path = folder.path() + "/" + keys[2].substr(0, 2) + "/" + keys[2] + ".flk";
  std::string bad = read_file(path);
  bad.resize(bad.size() / 2);
  write_file(path, bad);
  int damaged = 0;
  for (const auto& entry : cache.verify()) {
    EXPECT_EQ(entry.damaged, entry.key == keys[2]);
    EXPECT_EQ(entry.reason.empty(), !entry.damaged);
    damaged += entry.damaged ? 1 : 0;
  }
  EXPECT_EQ(damaged, 1);

  write_file(path + ".123.0.part", "what a dead writer left");
  write_file(folder.path() + "/keep.txt", "not ours");
  EXPECT_EQ(cache.clear(), 5);
  EXPECT_EQ(cache.list().size(), 0u);
  EXPECT_EQ(only_file(folder.path()), folder.path() + "/keep.txt");
}

TEST(Cache, RacingWritersAndReaders) {
  TempFolder folder;
  const Cache cache(folder.path());
  const std::string key = fresh_key();
  Warnings warnings;
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 25; ++i) {
        cache.put(key, std::vector<char>(1000 + 5000 * t, static_cast<char>('a' + t)));
        const auto got = cache.get(key);
        if (!got || got->size() != 1000u + 5000u * ((*got)[0] - 'a') || got->front() != got->back()) ++wrong;
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_TRUE(warnings.codes.empty());
  only_file(folder.path());  // nothing left aside
}

#ifndef FUSELAB_TSAN
// A process killed at any moment while it writes leaves an entry that is whole or absent.
TEST(Cache, KilledWriter) {
  TempFolder folder;
  const Cache cache(folder.path());
  const std::string key = fresh_key();
  std::mt19937 random(7);
  Warnings warnings;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    if (child == 0) {
      for (char c = 'a';; c = c == 'z' ? 'a' : static_cast<char>(c + 1)) cache.put(key, std::vector<char>(300000, c));
    }
    usleep(1000 + random() % 10000);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    if (const auto got = cache.get(key)) {
      EXPECT_EQ(got->size(), 300000u);
      EXPECT_EQ(got->front(), got->back());
    }
  }
  EXPECT_TRUE(warnings.codes.empty());
  cache.put(key, bytes("after"));
  EXPECT_EQ(*cache.get(key), bytes("after"));
  cache.clear();
  EXPECT_EQ(only_file(folder.path()), "");
}
#endif

TEST(Cache, UnusableFolderWarnsOnceAndGoesOn) {
  TempFolder folder;
  write_file(folder.path() + "/file", "not a folder");
  const Cache cache(folder.path() + "/file/cache");
  Warnings warnings;
  for (int i = 0; i < 3; ++i) {
    cache.put(fresh_key(), bytes("x"));
    EXPECT_FALSE(cache.get(fresh_key()));
  }
  EXPECT_EQ(warnings.codes, std::vector<std::string>{"cache.unusable"});
}

TEST(Cache, FolderWithoutPermission) {
  TempFolder folder;
  const Cache cache(folder.path());
  cache.put(fresh_key(), bytes("x"));
  chmod(folder.path().c_str(), 0);
  const uid_t me = geteuid();
  if (me == 0 && seteuid(65534) != 0) GTEST_SKIP() << "root reads everything and cannot become anyone else here";
  {
    Warnings warnings;
    cache.put(fresh_key(), bytes("x"));
    EXPECT_FALSE(cache.get(fresh_key()));
    EXPECT_EQ(warnings.codes, std::vector<std::string>{"cache.unusable"});
    EXPECT_THROW(cache.list(), Error);
    EXPECT_THROW(cache.clear(), Error);
  }
  ASSERT_EQ(seteuid(me), 0);
  chmod(folder.path().c_str(), 0755);
}

TEST(Cache, LoadUsesRepairsAndSkipsIt) {
  TempFolder folder;
  Variable where("FUSELAB_CACHE_DIR", folder.path().c_str());
  Variable off1("FUSELAB_FORCE_DISABLE_CACHES", nullptr), off2("TORCHINDUCTOR_FORCE_DISABLE_CACHES", nullptr);
  const auto source = lane_kernel("k_cached", "x * 3.0f");
  const Target target = Target::host();
  EXPECT_FALSE(load(source, target).from_cache);  // dropped at once: the next one has to read the file
  const Kernel again = load(source, target);
  EXPECT_TRUE(again.from_cache);
  EXPECT_GT(again.load_ms, 0);
  EXPECT_EQ(load(source, target).keep, again.keep) << "loaded once per process";

  {
    Variable off("FUSELAB_FORCE_DISABLE_CACHES", "1");
    EXPECT_FALSE(load(source, target).from_cache);
  }
  {
    Variable off("TORCHINDUCTOR_FORCE_DISABLE_CACHES", "1");
    EXPECT_FALSE(load(source, target).from_cache);
  }
  EXPECT_FALSE(load(source, target, {.read_cache = false}).from_cache);
}

TEST(Cache, LoadRepairsADamagedEntry) {
  TempFolder folder;
  Variable where("FUSELAB_CACHE_DIR", folder.path().c_str());
  const auto source = lane_kernel("k_repaired", "x * 5.0f");
  load(source, Target::host());
  const std::string path = only_file(folder.path());
  std::string bad = read_file(path);
  bad[bad.size() / 2] ^= 0x10;
  write_file(path, bad);
  Warnings warnings;
  EXPECT_FALSE(load(source, Target::host()).from_cache);
  EXPECT_EQ(warnings.codes, std::vector<std::string>{"cache.damaged"});
  EXPECT_NE(warnings.messages[0].find(path), std::string::npos);
  EXPECT_TRUE(load(source, Target::host()).from_cache);
  // A whole entry that is no object code: compiled again as well.
  Cache(folder.path()).put(cache_key(source.text(), Target::host()), bytes("not an ELF file"));
  EXPECT_FALSE(load(source, Target::host()).from_cache);
}

}  // namespace
}  // namespace fuselab::jit
