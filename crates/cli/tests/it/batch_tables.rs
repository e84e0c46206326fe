//! `formwork batch` on tables: columns in, columns out.

use std::path::Path;

use super::batch::{MARIA, batch, config, out};
use super::config::chat;
use super::{example, folder, refused, temporary};

#[test]
fn a_table_with_any_columns_is_processed_and_exported_with_them() {
    let server = chat(&[MARIA, r#"{"name": "Jon", "age": "x", "city": "Bergen"}"#]);
    let (out, config, person) = (out("table"), config(&server), example("person.schema.json"));
    let table = temporary(
        "batch-table.tsv",
        "ticket\ttitle\tbody\tyear\nA-1\tTrip\tMaria, 34\t2023\nA-2\tHome\t\"Jon,\n41\"\t2024\nA-1\tAgain\tx\t2024\n",
    );
    let template = "Title: {{ title }}\nText: {{ body }}";
    let run = ["run", &table, "-c", &person, "-o", &out, "--config", &config, "--concurrency", "1"];
    let ran = batch(&[&run[..], &["--id", "ticket", "--template", template]].concat());
    assert_eq!(ran.code, 1, "{}", ran.stderr);
    let sent: String =
        server.received().iter().map(|request| String::from_utf8_lossy(&request.body).into_owned()).collect();
    assert!(sent.contains(r"Title: Trip\nText: Maria, 34") && sent.contains(r"Text: Jon,\n41"), "{sent}");
    let csv = folder().join("batch-table.csv").display().to_string();
    assert_eq!(batch(&["export", &out, "--to", &csv]).code, 0);
    let text = std::fs::read_to_string(&csv).unwrap();
    let (header, rows) = text.split_once('\n').unwrap();
    let begin = "id,title,body,year,value.name,value.age,value.city,verdict,";
    assert!(header.starts_with(begin), "{header}");
    assert!(rows.starts_with("A-1,Trip,\"Maria, 34\",2023,Maria Lindqvist,34,Lisbon,accepted,"), "{rows}");
    assert!(rows.contains("A-2,Home,\"Jon,\n41\",2024,,,,rejected,"), "{rows}");
    assert!(rows.contains("row 3: the id \"\"A-1\"\" is that of row 1 already"), "{rows}");
    let lines = batch(&["export", &out]).rows();
    assert_eq!(lines[0]["columns"]["year"], "2023");
    assert_eq!(super::against_schema("batch-result.json", &lines[0]), Vec::<String>::new());
}

#[test]
fn a_file_that_cannot_be_read_or_written_is_refused_before_anything_is_made() {
    let (fresh, person) = (out("table-fresh"), example("person.schema.json"));
    let table = temporary("batch-names.csv", "name,text\na,b\n");
    let twice = temporary("batch-twice.csv", "id,input,input\n1,b,c\n");
    let sheet = temporary("batch-sheet.xlsx", "PK\x03\x04");
    let letters = folder().join("batch-table-letters");
    std::fs::create_dir_all(&letters).unwrap();
    let letters = letters.display().to_string();
    for (args, says) in [
        (vec![&*table, "--id", "name", "--input", "body"], "batch-names.csv:1: there is no column `body`"),
        (vec![&*table, "--id", "name", "--template", "{{ title }}"], "there is no column `title`"),
        (vec![&*table, "--id", "name", "--template", "{{ title"], "--template \"{{ title\": syntax error"),
        (vec![&*table, "--id", "name", "--template", "{{ année }}"], "digits and `_`: rename other columns"),
        (vec![&*twice], "batch-twice.csv:1: two columns are called `input`: rename one"),
        (vec![&*sheet], "this is a ZIP archive or a spreadsheet"),
        (vec![&*letters, "--id", "name"], "--id, --input and --template name columns, and a folder has none"),
    ] {
        let ran = batch(&[&["run"], &args[..], &["-c", &person, "-o", &fresh]].concat());
        refused(&ran, 2, says);
        assert!(!Path::new(&fresh).exists(), "{args:?} left a folder behind");
    }
}
