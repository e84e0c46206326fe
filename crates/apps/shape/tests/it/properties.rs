use formwork_core::Schema as _;
use formwork_shape::Shape;
use proptest::prelude::*;

use crate::strategy::node;

proptest! {
    #[test]
    fn a_shape_comes_back_out_of_its_schema(root in node()) {
        let shape = Shape::new(root);
        let (again, unsaid) = Shape::from_schema(shape.document()).unwrap();
        prop_assert_eq!(&again, &shape);
        prop_assert_eq!(unsaid, vec![]);
    }

    #[test]
    fn a_shape_comes_back_out_of_its_text(root in node()) {
        let shape = Shape::new(root);
        let text = shape.to_string();
        let again = Shape::parse(&text).map_err(|error| TestCaseError::fail(error.pointed(&text)))?;
        prop_assert_eq!(again, shape, "{}", text);
    }

    #[test]
    fn any_text_is_a_shape_or_a_mistake_with_a_place(text in any_text()) {
        if let Err(error) = Shape::parse(&text) {
            prop_assert!(error.line >= 1 && error.column >= 1 && !error.message.is_empty());
            prop_assert!(error.span.end <= text.len() + 1);
            prop_assert_eq!(error.pointed("f").lines().count(), 4);
        }
    }
}

/// Generates text from tokens of shapes, and arbitrary text.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("{"),
        Just("}"),
        Just("["),
        Just("]"),
        Just(":"),
        Just(","),
        Just("|"),
        Just("?"),
        Just(" "),
        Just("\n"),
        Just("//"),
        Just("/*"),
        Just("*/"),
        Just("\""),
        Just("\\"),
        Just("\"a\""),
        Just("string"),
        Just("null"),
        Just("low"),
        Just("-1.5"),
        Just("1e999"),
        Just("ä"),
        Just("\u{2028}"),
        Just("\r"),
        Just("\u{0}"),
    ];
    prop_oneof![prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat()), ".{0,60}"]
}
