use super::*;

/// A class that differs from others by its place among them alone.
pub(crate) fn placed(priority: u8, weight: f64) -> Class {
    Class {
        name: format!("{priority}/{weight}"),
        priority,
        weight,
        slo: Slo {
            first_token_ms: 500.0,
            end_to_end_ms: None,
        },
        queue_share: 0.5,
        queue_timeout: Duration::from_millis(100),
        critical: false,
        rate: None,
    }
}

fn class(name: &str) -> Class {
    Class {
        name: name.to_owned(),
        ..placed(1, 1.0)
    }
}

fn classes() -> Classes {
    let all = ["gold", "silver", "bronze"].map(class).to_vec();
    let mut classes = Classes::new(all, "silver").unwrap();
    classes.map_key("k1", "gold").unwrap();
    classes.map_model("tiny", "bronze").unwrap();
    classes
}

fn chosen(key: Option<&str>, header: Option<&str>, model: &str) -> String {
    let classes = classes();
    classes.get(classes.choose(key, header, model)).name.clone()
}

#[test]
fn a_key_comes_before_a_header_and_a_header_before_the_model() {
    assert_eq!(chosen(Some("k1"), Some("bronze"), "tiny"), "gold");
    assert_eq!(chosen(Some("k2"), Some("gold"), "tiny"), "gold");
    assert_eq!(chosen(None, None, "tiny"), "bronze");
    assert_eq!(chosen(None, None, "other"), "silver");
}

#[test]
fn a_header_that_names_no_class_is_as_none() {
    assert_eq!(chosen(None, Some("platinum"), "tiny"), "bronze");
    assert_eq!(chosen(None, Some(""), "other"), "silver");
}

#[test]
fn a_set_that_is_none_says_why() {
    assert_eq!(
        Classes::new(Vec::new(), "gold").unwrap_err(),
        ClassError::None
    );
    let twice = Classes::new(vec![class("a"), class("b"), class("a")], "a");
    assert_eq!(twice.unwrap_err(), ClassError::Twice("a".to_owned()));
    let error = Classes::new(vec![class("a"), class("b")], "c").unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no class \"c\"; the classes are a, b"
    );
    assert!(classes().map_key("k", "nobody").is_err());
    assert!(classes().map_model("m", "nobody").is_err());
}

#[test]
fn an_id_of_another_set_gives_the_default_class() {
    assert_eq!(classes().get(ClassId(17)).name, "silver");
}
