//! Histories as files: what is written reads back, and what is wrong is named with its line.

use check::history::{Op, Operation, ReadError, read_json_lines, write_json_line};
use wire::Nanos;

fn parse(text: &str) -> Result<Vec<Operation>, ReadError> {
    read_json_lines(text.as_bytes())
}

fn error(text: &str) -> String {
    parse(text).expect_err("the line is wrong").to_string()
}

const GOOD: &str = r#"{"client":1,"op":"read","key":"k","value":null,"invoke":5,"return":9}"#;

#[test]
fn every_operation_reads_back_as_it_was_written() {
    let ops = [
        Op::Read { value: None },
        Op::Read { value: Some(0) },
        Op::Insert { value: u64::MAX },
        Op::Update { value: Some(0xdead_beef) },
        Op::Update { value: None },
        Op::Delete,
        Op::Rmw { value: Some(1), new: 2 },
        Op::Rmw { value: None, new: 2 },
    ];
    let history: Vec<Operation> = ops
        .into_iter()
        .zip(0..)
        .map(|(op, number)| Operation {
            client: number,
            key: format!("key \"{number}\"\n\u{1f600}\\"),
            op,
            invoke: Nanos(u64::MAX - 10),
            ret: (number % 2 == 0).then_some(Nanos(u64::MAX)),
        })
        .collect();
    let mut file = Vec::new();
    history.iter().for_each(|operation| write_json_line(&mut file, operation).unwrap());
    assert_eq!(file.iter().filter(|byte| **byte == b'\n').count(), history.len(), "one line each");
    assert_eq!(read_json_lines(file.as_slice()).unwrap(), history);
}

#[test]
fn the_format_is_the_one_that_is_documented() {
    let operation = Operation {
        client: 3,
        key: "user1".to_owned(),
        op: Op::Rmw { value: Some(0xa), new: 0xb },
        invoke: Nanos(100),
        ret: Some(Nanos(250)),
    };
    let mut line = Vec::new();
    write_json_line(&mut line, &operation).unwrap();
    let expected = concat!(
        r#"{"client":3,"op":"rmw","key":"user1","value":"000000000000000a","new":"000000000000000b","#,
        r#""invoke":100,"return":250}"#,
        "\n"
    );
    assert_eq!(String::from_utf8(line).unwrap(), expected);
}

#[test]
fn fields_in_any_order_and_fields_unknown_are_fine() {
    let line = r#"{"return":9,"key":"k","node":3,"invoke":5,"value":null,"op":"read","client":1}"#;
    assert_eq!(parse(line).unwrap(), parse(GOOD).unwrap());
}

#[test]
fn a_delete_needs_no_value_and_empty_lines_are_skipped() {
    let text = "\n{\"client\":1,\"op\":\"delete\",\"key\":\"k\",\"invoke\":5,\"return\":9}\n\n";
    assert_eq!(parse(text).unwrap()[0].op, Op::Delete);
}

#[test]
fn a_read_modify_write_that_found_nothing_to_modify_saw_an_absent_key() {
    let line = GOOD.replace("read", "rmw").replace("\"invoke\"", "\"new\":null,\"invoke\"");
    assert_eq!(parse(&line).unwrap()[0].op, Op::Read { value: None });
}

#[test]
fn an_error_names_its_line() {
    let text = format!("{GOOD}\n\n{}\n", GOOD.replace("\"k\"", "7"));
    assert_eq!(error(&text), "history line 3: `key` is 7: a string is needed");
}

#[test]
fn what_is_wrong_is_said() {
    let wrong = [
        (GOOD.replace("\"client\":1,", ""), "field `client` is missing"),
        (GOOD.replace("\"client\":1", "\"client\":-1"), "`client` is -1: a whole number"),
        (GOOD.replace("read", "scan"), "`op` is \"scan\": it must be \"read\""),
        (GOOD.replace("\"op\":\"read\",", ""), "field `op` is missing"),
        (GOOD.replace("\"key\":\"k\",", ""), "field `key` is missing"),
        (GOOD.replace("\"value\":null,", ""), "field `value` is missing"),
        (GOOD.replace("null", "\"12\""), "`value` is \"12\": a string of 16 hex digits"),
        (GOOD.replace("null", "\"+00000000000000a\""), "16 hex digits"),
        (GOOD.replace("null", "17"), "`value` is 17: a string of 16 hex digits"),
        (GOOD.replace("read", "insert"), "an insert writes a value"),
        (GOOD.replace("read", "rmw"), "field `new` is missing"),
        (GOOD.replace("\"invoke\":5", "\"invoke\":null"), "`invoke` is null"),
        (GOOD.replace("\"invoke\":5", "\"invoke\":5.5"), "`invoke` is 5.5: a whole number"),
        (GOOD.replace(",\"return\":9", ""), "field `return` is missing"),
        (GOOD.replace("\"return\":9", "\"return\":4"), "returned (at 4) before it was invoked (at 5)"),
        (GOOD.replace('}', ""), "not JSON"),
        ("[1]".to_owned(), "expected one JSON object"),
    ];
    for (line, why) in wrong {
        let said = error(&line);
        assert!(said.starts_with("history line 1: ") && said.contains(why), "{line} gives: {said}");
    }
}

#[test]
fn bytes_that_are_no_text_are_an_error_with_their_line() {
    let bytes: &[u8] = b"\n\xff\xfe\n";
    let said = read_json_lines(bytes).expect_err("no text").to_string();
    assert!(said.starts_with("history line 2 cannot be read"), "{said}");
}
