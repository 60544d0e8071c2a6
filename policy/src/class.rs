//! Service classes: what each promises, and which one a request belongs to.
//!
//! A class is a promise (its [`Slo`]) and a rank among the others. The names
//! gold, silver and bronze are only defaults.
//!
//! # Which class
//! The first of these that names a class decides: the API key, the header
//! `x-slo-class`, the model, the default class. The key comes before the header
//! because the operator maps keys, while anybody can write a header. Whether a
//! client's header is believed at all is decided by the caller, who passes
//! `None` where it is not. A header that names no class falls through.

use std::collections::HashMap;
use std::time::Duration;

use crate::rate::Rate;

/// A class's place in [`Classes::all`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClassId(pub usize);

/// What a class promises, in milliseconds from the request's arrival. All
/// values are positive and finite.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slo {
    /// Until the first generated token.
    pub first_token_ms: f64,
    /// Until the end of the answer; `None` promises nothing.
    pub end_to_end_ms: Option<f64>,
}

/// A service class.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    /// Its name in the file, in headers and in metrics.
    pub name: String,
    /// A higher priority is served first.
    pub priority: u8,
    /// Its share against classes of the same priority, and of room that is
    /// [kept](crate::kept); above 0.
    pub weight: f64,
    /// What it promises.
    pub slo: Slo,
    /// How much of the SLO queueing may use, 0 to 1.
    pub queue_share: f64,
    /// How long a request may be held; zero holds none.
    pub queue_timeout: Duration,
    /// A class that is not critical is refused first when memory is short.
    pub critical: bool,
    /// Most requests over time, if limited.
    pub rate: Option<Rate>,
}

/// The classes, and the ways to one. There is always at least one class.
#[derive(Clone, Debug, PartialEq)]
pub struct Classes {
    all: Vec<Class>,
    default: ClassId,
    by_key: HashMap<String, ClassId>,
    by_model: HashMap<String, ClassId>,
}

/// Why classes do not make a set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClassError {
    /// There is none.
    #[error("at least one class is needed")]
    None,
    /// A class was named that there is not.
    #[error("there is no class {name:?}; the classes are {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// Two classes of one name.
    #[error("two classes are named {0:?}")]
    Twice(String),
}

impl Classes {
    /// A set of classes, of which the named one is for requests that say nothing.
    ///
    /// # Errors
    /// No class, two of one name, or a default that is none of them.
    pub fn new(all: Vec<Class>, default: &str) -> Result<Self, ClassError> {
        if all.is_empty() {
            return Err(ClassError::None);
        }
        for (at, class) in all.iter().enumerate() {
            if all[..at].iter().any(|before| before.name == class.name) {
                return Err(ClassError::Twice(class.name.clone()));
            }
        }
        let mut classes = Classes {
            all,
            default: ClassId(0),
            by_key: HashMap::new(),
            by_model: HashMap::new(),
        };
        classes.default = classes.named(default)?;
        Ok(classes)
    }

    /// Gives requests with this API key a class.
    ///
    /// # Errors
    /// There is no class of that name.
    pub fn map_key(&mut self, key: &str, class: &str) -> Result<(), ClassError> {
        let class = self.named(class)?;
        self.by_key.insert(key.to_owned(), class);
        Ok(())
    }

    /// Gives requests for this model a class.
    ///
    /// # Errors
    /// There is no class of that name.
    pub fn map_model(&mut self, model: &str, class: &str) -> Result<(), ClassError> {
        let class = self.named(class)?;
        self.by_model.insert(model.to_owned(), class);
        Ok(())
    }

    /// The class of a request. See the [module](self) for the order.
    #[must_use]
    pub fn choose(&self, key: Option<&str>, header: Option<&str>, model: &str) -> ClassId {
        key.and_then(|key| self.by_key.get(key).copied())
            .or_else(|| self.named(header?).ok())
            .or_else(|| self.by_model.get(model).copied())
            .unwrap_or(self.default)
    }

    /// A class by its id; an id of another set gives the default one.
    #[must_use]
    pub fn get(&self, id: ClassId) -> &Class {
        self.all.get(id.0).unwrap_or(&self.all[self.default.0])
    }

    /// All classes, in the order in which they were given.
    #[must_use]
    pub fn all(&self) -> &[Class] {
        &self.all
    }

    /// The class of this name.
    ///
    /// # Errors
    /// There is none.
    pub fn named(&self, name: &str) -> Result<ClassId, ClassError> {
        let found = self.all.iter().position(|class| class.name == name);
        found.map(ClassId).ok_or_else(|| ClassError::Unknown {
            name: name.to_owned(),
            known: self.names(),
        })
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.all.iter().map(|class| class.name.as_str()).collect();
        names.join(", ")
    }
}

#[cfg(test)]
#[path = "class_tests.rs"]
pub(crate) mod tests;
