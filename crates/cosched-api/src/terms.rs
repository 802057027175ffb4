//! How something is adopted, as rules of the configuration, labels of containers and annotations of pods say it.
//!
//! Labels and annotations come from people who are not trusted: they can only ask for less than the operator gives.

use crate::parse;
use crate::policy::Policy;
use crate::types::{Class, JobRequest};

/// The longest name and value of a label or annotation, in bytes.
const BYTES_MAX: usize = 64;

/// How something is adopted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Terms {
    /// The job's class.
    pub class: Option<Class>,
    /// Its share.
    pub share: Option<f64>,
    /// Its share is its owner's quota.
    pub share_from_quota: bool,
    /// Its CPUs.
    pub cpus: Option<u32>,
    /// Its own policy.
    pub policy: Option<Policy>,
    /// Its queue.
    pub queue: Option<String>,
}

/// Why a value is not possible.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{what} ({why}). {hint}")]
pub struct TermError {
    /// What is not possible.
    pub what: String,
    /// Why.
    pub why: String,
    /// What to do.
    pub hint: String,
}

/// What labels or annotations are called, and what the operator gives.
#[derive(Clone, Copy, Debug)]
pub struct Asking<'a> {
    /// The beginning of their names.
    pub prefix: &'a str,
    /// `labels` or `annotations`.
    pub kind: &'a str,
    /// What limits them, as in "no more than …".
    pub giver: &'a str,
    /// What to do about one that asks for more.
    pub hint: &'a str,
    /// The most that is given, and what is taken where they say nothing.
    pub most: &'a Terms,
    /// The queues that they may name.
    pub queues: &'a [String],
}

/// A value that is not possible, as TOML has it.
pub fn wrong_value(key: &str, value: &str, why: &str, hint: &str) -> TermError {
    TermError { what: format!("`{key} = \"{value}\"` is not possible"), why: why.to_owned(), hint: hint.to_owned() }
}

/// The value of a word.
///
/// # Errors
/// The word is none of these.
pub fn choice<T: Copy>(key: &str, word: &str, valid: &[(&str, T)]) -> Result<T, TermError> {
    if let Some((_, value)) = valid.iter().find(|(name, _)| *name == word) {
        return Ok(*value);
    }
    let names = || valid.iter().map(|(name, _)| *name);
    let all = || names().collect::<Vec<_>>().join(", ");
    let hint = match parse::nearest(word, names()) {
        Some(near) => format!("Did you mean `{near}`?"),
        None => format!("Valid are: {}.", all()),
    };
    let why = format!("it takes one of: {}", all());
    Err(wrong_value(key, word, &why, &hint))
}

impl Terms {
    /// Sets the class.
    ///
    /// # Errors
    /// As the other setters: no such value. `key` is what the user calls it.
    pub fn set_class(&mut self, key: &str, word: &str) -> Result<(), TermError> {
        self.class = Some(choice(key, word, &Class::ALL.map(|class| (class.name(), class)))?);
        Ok(())
    }

    /// Sets the policy.
    ///
    /// # Errors
    /// No such policy.
    pub fn set_policy(&mut self, key: &str, word: &str) -> Result<(), TermError> {
        self.policy = Some(choice(key, word, &Policy::ALL.map(|policy| (policy.name(), policy)))?);
        Ok(())
    }

    /// Sets the share: a percentage, or `from-quota`.
    ///
    /// # Errors
    /// No possible share.
    pub fn set_share(&mut self, key: &str, text: &str) -> Result<(), TermError> {
        self.share_from_quota = text == "from-quota";
        self.share = if self.share_from_quota { None } else { Some(part(key, text)?) };
        Ok(())
    }

    /// Sets the number of CPUs.
    ///
    /// # Errors
    /// There are none.
    pub fn set_cpus(&mut self, key: &str, cpus: u32) -> Result<(), TermError> {
        if cpus == 0 {
            return Err(wrong_value(key, "0", "it could never run", "Write 1 or more, or leave it out for all."));
        }
        self.cpus = Some(cpus);
        Ok(())
    }

    /// Reads what a table of a configuration says.
    ///
    /// # Errors
    /// No such value.
    pub fn read(
        class: Option<&str>,
        share: Option<&str>,
        cpus: Option<u32>,
        policy: Option<&str>,
    ) -> Result<Terms, TermError> {
        let mut terms = Terms::default();
        class.map(|word| terms.set_class("class", word)).transpose()?;
        share.map(|text| terms.set_share("share", text)).transpose()?;
        cpus.map(|cpus| terms.set_cpus("cpus", cpus)).transpose()?;
        policy.map(|word| terms.set_policy("policy", word)).transpose()?;
        Ok(terms)
    }

    /// A request with these terms.
    pub fn into_request(self) -> JobRequest {
        JobRequest {
            class: self.class,
            cpus: self.cpus,
            policy: self.policy,
            share_max: self.share,
            share_from_quota: self.share_from_quota,
            queue: self.queue,
            ..JobRequest::default()
        }
    }
}

impl Asking<'_> {
    /// What labels or annotations ask for, and where they say nothing what the operator gives. `None` if there are none with the prefix.
    ///
    /// # Errors
    /// One is no valid value, or asks for more than the operator gives.
    pub fn terms<'t>(&self, texts: impl IntoIterator<Item = (&'t str, &'t str)>) -> Result<Option<Terms>, TermError> {
        let (mut asked, mut has_some) = (Terms::default(), false);
        for (key, value) in texts {
            let Some(name) = key.strip_prefix(self.prefix) else { continue };
            has_some = true;
            self.set(&mut asked, (key, name), value)?;
        }
        if has_some { self.within(asked).map(Some) } else { Ok(None) }
    }

    fn set(&self, asked: &mut Terms, (key, name): (&str, &str), value: &str) -> Result<(), TermError> {
        self.check_text(key, value)?;
        match name {
            "class" => asked.set_class(key, value),
            "share" => asked.set_share(key, value),
            "policy" => asked.set_policy(key, value),
            "cpus" => {
                let hint = "Write for example \"2\".";
                let cpus = value.parse().map_err(|_| wrong_value(key, value, "it is no number of CPUs", hint))?;
                asked.set_cpus(key, cpus)
            }
            "queue" if !self.queues.is_empty() => {
                asked.queue = Some(choice(key, value, &self.queue_names())?.to_owned());
                Ok(())
            }
            _ => {
                let queue = if self.queues.is_empty() { "" } else { ", queue" };
                let why =
                    format!("{} of cosched are {}… with class, cpus, policy{queue} and share", self.kind, self.prefix);
                Err(wrong_value(key, value, &why, "Correct its name."))
            }
        }
    }

    fn queue_names(&self) -> Vec<(&str, &str)> {
        self.queues.iter().map(|queue| (queue.as_str(), queue.as_str())).collect()
    }

    /// Whether a text may be printed.
    ///
    /// # Errors
    /// It has control characters, or is too long.
    pub fn check_text(&self, key: &str, value: &str) -> Result<(), TermError> {
        if [key, value].iter().any(|text| text.contains(char::is_control)) {
            return Err(wrong_value(self.prefix, "…", "it has control characters", "Write it without them."));
        }
        if key.len().max(value.len()) > BYTES_MAX {
            let why = format!("it is longer than {BYTES_MAX} bytes");
            return Err(wrong_value(self.prefix, "…", &why, "Shorten it."));
        }
        Ok(())
    }

    /// What is asked for, where that is no more than the operator gives; else what the operator gives.
    fn within(&self, asked: Terms) -> Result<Terms, TermError> {
        let most = self.most;
        let more = |name: &str, value: &str, given: String| {
            let why = format!("{} ask for no more than {}, which is {given}", self.kind, self.giver);
            wrong_value(&format!("{}{name}", self.prefix), value, &why, self.hint)
        };
        let class_max = most.class.unwrap_or(Class::Interactive);
        if let Some(class) = asked.class.filter(|class| *class < class_max) {
            return Err(more("class", class.name(), class_max.name().to_owned()));
        }
        if let Some((cpus, most)) = asked.cpus.zip(most.cpus).filter(|(cpus, most)| cpus > most) {
            return Err(more("cpus", &cpus.to_string(), most.to_string()));
        }
        if let Some((policy, given)) = asked.policy.zip(most.policy).filter(|(policy, given)| policy != given) {
            return Err(more("policy", policy.name(), given.name().to_owned()));
        }
        let percent = |share: f64| format!("{}%", (share * 1000.0).round() / 10.0);
        if let Some((share, most)) = asked.share.zip(most.share).filter(|(share, most)| share > most) {
            return Err(more("share", &percent(share), percent(most)));
        }
        if asked.share_from_quota && !most.share_from_quota {
            // It lifts a quota, in bursts also that of the user who started the container.
            let given = most.share.map_or_else(|| "its quota as it is".to_owned(), percent);
            return Err(more("share", "from-quota", given));
        }
        let has_share = asked.share.is_some() || asked.share_from_quota;
        Ok(Terms {
            class: asked.class.or(most.class),
            share: if has_share { asked.share } else { most.share },
            share_from_quota: if has_share { asked.share_from_quota } else { most.share_from_quota },
            cpus: asked.cpus.or(most.cpus),
            policy: asked.policy.or(most.policy),
            queue: asked.queue.or_else(|| most.queue.clone()),
        })
    }
}

/// A share has whole thousandths of the time.
fn part(key: &str, text: &str) -> Result<f64, TermError> {
    let part = parse::part_of_time(text).filter(|part| part * 1000.0 >= 0.5);
    let why = "a share is more than 0% and at most 100% of the time, or from-quota";
    part.ok_or_else(|| wrong_value(key, text, why, "Write for example \"50%\"."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking<'a>(most: &'a Terms, queues: &'a [String]) -> Asking<'a> {
        Asking { prefix: "x/", kind: "annotations", giver: "the operator gives", hint: "Change it.", most, queues }
    }

    #[test]
    fn a_queue_is_named_only_where_the_operator_lists_it() {
        let (most, queues) = (Terms { queue: Some("day".into()), ..Terms::default() }, ["day".into(), "night".into()]);
        let terms = |queues, value| asking(&most, queues).terms([("x/queue", value)]);
        assert_eq!(terms(&queues, "night").unwrap().unwrap().queue.as_deref(), Some("night"));
        let refused = terms(&queues, "nigth").unwrap_err();
        assert!(refused.to_string().contains("Did you mean `night`?"), "{refused}");
        assert!(terms(&[], "night").unwrap_err().why.ends_with("class, cpus, policy and share"));
        let unasked = asking(&most, &queues).terms([("x/class", "batch"), ("y", "z")]).unwrap().unwrap();
        assert_eq!(unasked.queue.as_deref(), Some("day"));
        assert_eq!(asking(&most, &queues).terms([("y", "z")]), Ok(None));
    }

    #[test]
    fn a_share_of_less_than_a_thousandth_is_none() {
        let mut terms = Terms::default();
        assert!(terms.set_share("share", "0.04%").is_err() && terms.set_share("share", "0.05%").is_ok());
        assert!(terms.set_share("share", "nan%").is_err() && terms.set_share("share", "from-quota").is_ok());
        assert_eq!((terms.share, terms.share_from_quota), (None, true));
    }
}
