use formwork_core::Schema as _;
use formwork_shape::{Kind, Shape};
use serde_json::json;

use crate::DOCUMENT;

fn document(text: &str) -> serde_json::Value {
    Shape::parse(text).unwrap_or_else(|error| panic!("{}", error.pointed("s"))).document().clone()
}

#[test]
fn the_documents_own_shape() {
    let expected = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Required field"},
            "rationale": {"type": "string", "contentMediaType": "text/markdown", "description": "Required field"},
            "components": {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {
                        "id": {"type": "string"},
                        "responsibility": {"type": "string"},
                        "api": {"type": "string", "contentMediaType": "text/markdown"},
                    },
                    "required": ["id", "responsibility", "api"],
                },
                "description": "Required array",
            },
            "risks": {"type": "array", "items": {"type": "string"}, "description": "Required array of strings"},
        },
        "required": ["name", "rationale", "components", "risks"],
    });
    assert_eq!(document(DOCUMENT), expected);
}

#[test]
fn every_type_and_alternative() {
    for (text, expected) in [
        ("string", json!({"type": "string"})),
        ("markdown", json!({"type": "string", "contentMediaType": "text/markdown"})),
        ("number", json!({"type": "number"})),
        ("integer | null", json!({"type": ["integer", "null"]})),
        ("null|boolean", json!({"type": ["boolean", "null"]})),
        ("any", json!({})),
        ("any | null", json!({})),
        ("date | null", json!({"type": ["string", "null"], "format": "date"})),
        ("text | date | rate", json!({"type": "string", "enum": ["text", "date", "rate"]})),
        ("null", json!({"const": null})),
        ("\"1.0\"", json!({"type": "string", "const": "1.0"})),
        ("low | \"very high\" | low-er", json!({"type": "string", "enum": ["low", "very high", "low-er"]})),
        ("1 | -2.5 | true | null | \"x\"", json!({"enum": [1, -2.5, true, null, "x"]})),
        ("[[integer]]", json!({"type": "array", "items": {"type": "array", "items": {"type": "integer"}}})),
        (
            "[\"a\" | \"b\"] | null",
            json!({"type": ["array", "null"], "items": {"type": "string", "enum": ["a", "b"]}}),
        ),
        ("{}", json!({"type": "object", "properties": {}})),
        ("{a?: string,}", json!({"type": "object", "properties": {"a": {"type": "string"}}})),
        (
            "{\"a\": string, \"b\"?: {\"c\": any} | null}",
            json!({"type": "object", "properties": {
                "a": {"type": "string"},
                "b": {"type": ["object", "null"], "properties": {"c": {}}, "required": ["c"]},
            }, "required": ["a"]}),
        ),
        (
            "{\"\\u00e4 \\\"\": string}",
            json!({"type": "object", "properties": {"ä \"": {"type": "string"}}, "required": ["ä \""]}),
        ),
    ] {
        assert_eq!(document(text), expected, "{text}");
    }
}

#[test]
fn a_comment_belongs_to_what_it_stands_beside() {
    let text = "
        // A person
        // as registered.
        {
          /* Given
             name */
          \"name\": string, // and surname
          /// how old
          \"age\"?: integer /* in years */, \"tags\": [ // at most three
            // one word
            string
          ], // sorted
          \"home\": { // where
            \"city\": string // today
            // not the parish
          }
          // or any other
        } // of 2026
        // the end";
    let document = document(text);
    let about = |pointer: &str| {
        document.pointer(pointer).and_then(|node| node["description"].as_str()).unwrap_or("-").to_owned()
    };
    assert_eq!(about(""), "A person as registered. or any other of 2026 the end");
    assert_eq!(about("/properties/name"), "Given name and surname");
    assert_eq!(about("/properties/age"), "how old in years");
    assert_eq!(about("/properties/tags"), "at most three sorted");
    assert_eq!(about("/properties/tags/items"), "one word");
    assert_eq!(about("/properties/home"), "where not the parish");
    assert_eq!(about("/properties/home/properties/city"), "today");
}

#[test]
fn it_is_written_as_the_document_has_it() {
    let expected = r#"{
  "name": string, // Required field
  "rationale": markdown, // Required field
  "components": [ // Required array
    {
      "id": string,
      "responsibility": string,
      "api": markdown
    }
  ],
  "risks": [string] // Required array of strings
}"#;
    assert_eq!(Shape::parse(DOCUMENT).unwrap().to_string(), expected);
    let text = "{\"a\"?: [{\"b\": \"x\" | null}] | null, \"c\": {}}";
    let written = "{\n  \"a\"?: [{\n    \"b\": \"x\" | null\n  }] | null,\n  \"c\": {}\n}";
    assert_eq!(Shape::parse(text).unwrap().to_string(), written);
}

#[test]
fn names_and_nodes_are_there_to_be_looked_at() {
    let shape: Shape = "{\"a\"?: [markdown]}".parse().unwrap();
    assert_eq!((shape.name(), shape.clone().with_name("plan").name()), ("shape", "plan"));
    let Kind::Object(fields) = &shape.root().kind else { panic!("{shape:?}") };
    assert!(fields[0].optional && fields[0].name == "a", "{fields:?}");
}

#[test]
fn short_names_bare_names_and_dates_mean_the_same_at_every_depth() {
    for (short, long) in [
        ("{a: int}", "{a: integer}"),
        ("{a: float | null, b?: bool}", "{a: number | null, b?: boolean}"),
        ("{a: [str], b: text}", "{a: [string], b: string}"),
        ("{a, b?, c: date}", "{a: string, b?: string, c: date}"),
        ("{\"a b\", c}", "{\"a b\": string, c: string}"),
    ] {
        for (before, after) in [("", ""), ("[", "]"), ("{x: ", "}"), ("{x: [{y: ", "}]}"), ("[[[", "]]]")] {
            let parse = |text: &str| Shape::parse(&format!("{before}{text}{after}"));
            assert_eq!(parse(short).unwrap(), parse(long).unwrap(), "{before}{short}{after}");
        }
        let fields = |text: &str| text.trim_start_matches('{').trim_end_matches('}').to_owned();
        assert_eq!(Shape::parse_fields(&fields(short)).unwrap(), Shape::parse(long).unwrap(), "{short}");
    }
}

#[test]
fn a_list_of_fields_is_an_object_without_brackets() {
    for (text, shape) in [
        ("name", "{name: string}"),
        ("name, age: int,", "{name: string, age: integer}"),
        ("name\nage: int\n", "{name: string, age: integer}"),
        ("date", "{date: string}"),
        (
            "vendor  # the seller\nitems: [{name, qty: int}]  # all, in order\n",
            "{vendor: string, // the seller\n items: [{name: string, qty: integer}] // all, in order\n}",
        ),
        ("# of the person\nname", "{\n// of the person\nname: string}"),
        ("name # first and last", "{name: string // first and last\n}"),
        ("stage: draft | final, n: number | null", "{stage: draft | final, n: number | null}"),
        ("who: {name, born: int}, ok: bool", "{who: {name: string, born: integer}, ok: boolean}"),
    ] {
        assert_eq!(Shape::parse_fields(text).unwrap(), Shape::parse(shape).unwrap(), "{text}");
    }
}
