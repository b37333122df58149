// The flags of spec rows P-24..P-28 and P-54..P-61.
#include "fuselab/fuse/flags.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <utility>

#include "fuselab/core/error.h"
#include "fuselab/core/warn.h"
#include "fuselab/ops/op.h"

namespace fuselab::fuse {
namespace {

class FlagsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    before_ =
        set_warning_handler([this](const std::string& code, const std::string& text) { warnings.emplace_back(code, text); });
  }
  void TearDown() override { set_warning_handler(before_); }
  int warned(const std::string& code) const {
    int n = 0;
    for (const auto& w : warnings) n += w.first == code;
    return n;
  }
  std::vector<std::pair<std::string, std::string>> warnings;

 private:
  WarningHandler before_;
};
using flags = FlagsTest;

Flags read(std::string_view text) { return resolve({parse_flags(text, "AUTOFUSE_FLAGS", Origin::environment)}); }

std::string code_of(std::string_view text, std::string_view variable = "AUTOFUSE_FLAGS") {
  try {
    resolve({parse_flags(text, variable, Origin::environment)});
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

std::string message_of(std::string_view text) {
  try {
    read(text);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST_F(flags, Defaults) {
  const Flags f = read("");
  EXPECT_TRUE(f.fuse.enable && f.fuse.elemwise && f.fuse.reduce && f.fuse.concat && f.fuse.slice && f.fuse.gather &&
              f.fuse.transpose);
  EXPECT_EQ(f.fuse.max_fusion_size, 64);
  EXPECT_EQ(f.fuse.recomputation_threshold, 1);
  EXPECT_TRUE(f.keep_dtype.empty());
  EXPECT_FALSE(f.debug);
  EXPECT_EQ(f.debug_dir, "fuselab_debug");
}

TEST_F(flags, EnablePass) {
  const Flags f = read("--enable_autofuse=true;--autofuse_enable_pass=concat");
  EXPECT_TRUE(f.fuse.enable && f.fuse.elemwise && f.fuse.concat);
  EXPECT_FALSE(f.fuse.reduce || f.fuse.slice || f.fuse.gather || f.fuse.transpose);
}

TEST_F(flags, EnablePassList) {
  const Flags f = read(" --autofuse_enable_pass = reduce , concat ; ");
  EXPECT_TRUE(f.fuse.elemwise && f.fuse.reduce && f.fuse.concat);
  EXPECT_FALSE(f.fuse.slice || f.fuse.gather || f.fuse.transpose);
  EXPECT_TRUE(read("--autofuse_enable_pass=all").fuse.gather);
}

TEST_F(flags, Master) {
  EXPECT_FALSE(read("--enable_autofuse=false;--autofuse_enable_pass=all").fuse.enable);
  EXPECT_TRUE(read("--enable_autofuse=true").fuse.enable);
}

TEST_F(flags, DisableElemwise) {
  const Flags f = read("--autofuse_disable_pass=elemwise");
  EXPECT_FALSE(f.fuse.elemwise);
  EXPECT_TRUE(f.fuse.reduce && f.fuse.concat);
  const Flags g = read("--autofuse_enable_pass=reduce;--autofuse_disable_pass=elemwise");
  EXPECT_FALSE(g.fuse.elemwise || g.fuse.concat);
  EXPECT_TRUE(g.fuse.reduce);
  EXPECT_FALSE(read("--autofuse_disable_pass=all").fuse.elemwise);
}

TEST_F(flags, ElemwiseInPassList) {
  const Flags f = read("--autofuse_enable_pass=elemwise");
  EXPECT_TRUE(f.fuse.elemwise);
  EXPECT_FALSE(f.fuse.reduce);
}

TEST_F(flags, UnknownOptionListsWhatExists) {
  EXPECT_EQ(code_of("--autofuse_pass=all"), "flags.unknown_option");
  const std::string text = message_of("--autofuse_pass=all");
  for (const FlagRow& row : flag_rows()) {
    EXPECT_EQ(text.find(row.option) != std::string::npos, row.variable == "AUTOFUSE_FLAGS") << row.option;
  }
  EXPECT_EQ(code_of("--debug_dir=x"), "flags.unknown_option");
  EXPECT_NE(message_of("--debug_dir=x").find("AUTOFUSE_DFX_FLAGS"), std::string::npos);
  EXPECT_EQ(code_of("--max_fusion_size=3", "AUTOFUSE_DFX_FLAGS"), "flags.unknown_option");
}

TEST_F(flags, UnknownClassListsWhatExists) {
  EXPECT_EQ(code_of("--autofuse_enable_pass=reduce,softmax"), "flags.unknown_class");
  const std::string text = message_of("--autofuse_disable_pass=softmax");
  for (const std::string& name : class_names()) EXPECT_NE(text.find(name), std::string::npos);
  EXPECT_EQ(code_of("--autofuse_enable_pass="), "flags.unknown_class");
  EXPECT_EQ(code_of("--autofuse_enable_pass=reduce,"), "flags.unknown_class");
  EXPECT_EQ(code_of("--autofuse_disable_pass="), "");
}

TEST_F(flags, BadValues) {
  for (const char* text :
       {"--enable_autofuse=1", "--enable_autofuse=yes", "--enable_autofuse=", "--max_fusion_size=-1", "--max_fusion_size=x",
        "--max_fusion_size=", "--max_fusion_size=3.5", "--max_fusion_size=99999999999", "--recomputation_threshold=two"}) {
    EXPECT_EQ(code_of(text), "flags.bad_value") << text;
  }
  for (const char* text : {"enable_autofuse=true", "--enable_autofuse", "true", "--enable_autofuse=true --max_fusion_size"}) {
    EXPECT_NE(code_of(text), "") << text;
  }
  EXPECT_EQ(code_of("--max_fusion_size=3;--max_fusion_size=4"), "flags.twice");
}

TEST_F(flags, ClassInBothLists) {
  EXPECT_EQ(code_of("--autofuse_enable_pass=reduce,concat;--autofuse_disable_pass=concat"), "flags.class_conflict");
  EXPECT_EQ(code_of("--autofuse_enable_pass=reduce;--autofuse_disable_pass=all"), "flags.class_conflict");
  EXPECT_EQ(code_of("--autofuse_enable_pass=all;--autofuse_disable_pass=concat"), "");
  EXPECT_NE(message_of("--autofuse_enable_pass=concat;--autofuse_disable_pass=concat").find("concat"), std::string::npos);
}

TEST_F(flags, OptionsWithoutMeaningWarnOnce) {
  read("--autofuse_enable_pgo=true;--max_fusion_size=8");
  read("--autofuse_enable_pgo=true");
  EXPECT_EQ(warned("flags.no_meaning"), 1);
}

TEST_F(flags, Blacklist) {
  EXPECT_EQ(read("--autofuse_enhance_precision_blacklist=abs,mul").keep_dtype, (std::vector<std::string>{"abs", "mul"}));
  EXPECT_EQ(read("--autofuse_enhance_precision_blacklist=all").keep_dtype, (std::vector<std::string>{"all"}));
  EXPECT_TRUE(read("--autofuse_enhance_precision_blacklist=").keep_dtype.empty());
}

TEST_F(flags, BlacklistNames) {
  // The Ascend spelling, in any case.
  EXPECT_EQ(read("--autofuse_enhance_precision_blacklist=Abs, MUL").keep_dtype, (std::vector<std::string>{"abs", "mul"}));
  EXPECT_EQ(code_of("--autofuse_enhance_precision_blacklist=Abs,Frobnicate"), "flags.unknown_operator");
  EXPECT_NE(message_of("--autofuse_enhance_precision_blacklist=Frobnicate").find("Frobnicate"), std::string::npos);
}

TEST_F(flags, BlacklistOfAlwaysPromotedWarns) {
  read("--autofuse_enhance_precision_blacklist=Mean,Abs");
  EXPECT_EQ(warned("flags.always_promoted"), 1);
}

TEST_F(flags, BlacklistUnsupported) {
  for (const ops::Op& op : ops::table()) {
    if (op.low_precision_meaning || op.name == "sum" || op.name == "mean" || op.name == "prod") continue;
    const std::string text = "--autofuse_enhance_precision_blacklist=" + op.name;
    EXPECT_EQ(code_of(text), "flags.no_low_precision");
    EXPECT_NE(message_of(text).find(op.name), std::string::npos);
    EXPECT_NE(message_of(text).find("f16"), std::string::npos);
  }
}

TEST_F(flags, StrongerPlaceWinsAndSaysSo) {
  const Settings env = parse_flags("--max_fusion_size=8;--enable_autofuse=false", "AUTOFUSE_FLAGS", Origin::environment);
  const Settings cli = named_settings({{"--max_fusion_size", "16"}}, Origin::command_line);
  const Settings api = named_settings({{"max_fusion_size", "32"}}, Origin::api);
  const Flags f = resolve({api, env, cli});
  EXPECT_EQ(f.fuse.max_fusion_size, 32);
  EXPECT_FALSE(f.fuse.enable);
  EXPECT_EQ(warned("flags.overridden"), 2);
  warnings.clear();
  resolve({env, named_settings({{"max_fusion_size", "8"}}, Origin::api)});
  EXPECT_EQ(warned("flags.overridden"), 0);
  EXPECT_THROW(named_settings({{"fuse_size", "3"}}, Origin::api), Error);
}

TEST_F(flags, Environment) {
  setenv("AUTOFUSE_FLAGS", "--max_fusion_size=5", 1);
  setenv("AUTOFUSE_DFX_FLAGS", "--codegen_compile_debug=true;--debug_dir=here", 1);
  const Flags f = resolve({environment_settings()});
  unsetenv("AUTOFUSE_FLAGS");
  unsetenv("AUTOFUSE_DFX_FLAGS");
  EXPECT_EQ(f.fuse.max_fusion_size, 5);
  EXPECT_TRUE(f.debug);
  EXPECT_EQ(f.debug_dir, "here");
}

TEST_F(flags, DebugFolder) {
  const auto dfx = [](std::string_view text) { return resolve({parse_flags(text, "AUTOFUSE_DFX_FLAGS", Origin::environment)}); };
  EXPECT_TRUE(dfx("--debug_dir=d").debug);
  EXPECT_FALSE(dfx("--debug_dir=d;--codegen_compile_debug=false").debug);
  EXPECT_EQ(code_of("--debug_dir=", "AUTOFUSE_DFX_FLAGS"), "flags.bad_value");
}

TEST_F(flags, PageNamesEveryOption) {
  const std::string page = flags_markdown();
  for (const FlagRow& row : flag_rows()) EXPECT_NE(page.find("`--" + row.option + "`"), std::string::npos);
  for (const char* name : {"AUTOFUSE_FLAGS", "AUTOFUSE_DFX_FLAGS", "FUSELAB_CACHE_DIR"})
    EXPECT_NE(page.find(name), std::string::npos);
}

}  // namespace
}  // namespace fuselab::fuse
