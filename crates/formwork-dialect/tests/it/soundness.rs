//! Lowering made-up schemas: what is sent compiles, and what it allows is judged valid or a loss says why not.

use formwork_core::{LossKind, Lower as _, LowerRequest, lift};
use formwork_dialect::{Native, Prompt};
use proptest::prelude::*;
use proptest::test_runner::TestRng;

use crate::model::sample;

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_sent_is_sound(schema in formwork_testkit::schema(), seed in any::<[u8; 32]>(), max_tokens in 32_u32..2000) {
        let request = LowerRequest { max_tokens: Some(max_tokens), ..LowerRequest::new(&schema) };
        let lowered = Native::LLGUIDANCE.lower(&request).map_err(|refused| TestCaseError::fail(format!("{schema}: {refused}")))?;
        let sent = lowered.schema.as_ref().unwrap();
        let unsaid = lowered.losses.iter().any(|loss| loss.kind != LossKind::Tightened);
        let compiled = formwork_schema::compile(&schema).unwrap();
        let mut rng = TestRng::from_seed(proptest::test_runner::RngAlgorithm::ChaCha, &seed);
        for _ in 0..3 {
            let draw = |below: usize| rng.next_u32() as usize % below;
            let document = sample(sent, draw).map_err(|error| TestCaseError::fail(format!("{schema} as {sent}: {error}")))?;
            let (value, problems) = lift(document, &lowered);
            prop_assert!(problems.is_empty());
            prop_assert!(unsaid || compiled.is_valid(&value), "{value} is allowed by {sent}, but not by {schema}");
        }
    }

    #[test]
    fn losses_point_into_the_schema(schema in formwork_testkit::schema()) {
        let lowered = Native::LLGUIDANCE.lower(&LowerRequest::new(&schema)).unwrap();
        for loss in &lowered.losses {
            prop_assert!(schema.pointer(&loss.pointer).is_some(), "{loss} in {schema}");
        }
    }

    #[test]
    fn lowering_is_a_function(schema in formwork_testkit::schema()) {
        let request = LowerRequest::new(&schema);
        prop_assert_eq!(Native::LLGUIDANCE.lower(&request), Native::LLGUIDANCE.lower(&request));
        prop_assert_eq!(Prompt::outline().lower(&request), Prompt::outline().lower(&request));
    }
}
