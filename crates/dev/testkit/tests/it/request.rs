use formwork_schema::{compile, says_nothing, wrapped};
use formwork_testkit::{any_schema, schema};
use proptest::prelude::*;
use serde_json::json;

proptest! {
    #[test]
    fn a_generated_schema_that_rejects_a_value_is_neither_refused_nor_unwrapped(
        schema in prop_oneof![schema(), any_schema()]
    ) {
        let values = [json!(null), json!(true), json!(-7.5), json!("text"), json!([1]), json!({"a": 1, "b": [null]})];
        let compiled = compile(&schema).unwrap();
        prop_assert_eq!(wrapped(&schema), None);
        if !values.iter().all(|value| compiled.is_valid(value)) {
            prop_assert_eq!(says_nothing(&schema), None);
        }
    }
}
