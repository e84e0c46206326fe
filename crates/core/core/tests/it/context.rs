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
        message.starts_with("the input has at least 380000 tokens, and the context of `one` has 128000: "),
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

#[test]
fn a_later_target_that_is_too_small_ends_the_run_with_the_failure_before_it() {
    let targets = vec![sized("one", 0), sized("two", 8192)];
    let plan = Plan::new(contract(), targets).with_policy(Policy::new(1)).build().unwrap();
    let driven = drive(&plan, Input::new(["word ".repeat(9000)]), &[Reply::Fails(FaultKind::Auth)]);
    let error = driven.run.finish().unwrap_err();
    assert_eq!((error.kind(), error.calls().len()), (ErrorKind::Unavailable, 1), "{error}");
}
