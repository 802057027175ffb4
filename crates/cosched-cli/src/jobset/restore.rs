//! Restores the machine's policy and sharing at the end, also after failures and Ctrl-C.

use crate::out::{Failure, say};
use crate::run::connect_or_start;
use cosched_api::{Client, Policy, PolicyRequest, Sharing, SocketChoice, Status};

/// Remembers the original settings and the present ones.
#[derive(Debug)]
pub(crate) struct RestorePolicy {
    socket: SocketChoice,
    before: (Policy, Sharing),
    now: (Policy, Sharing),
}

impl RestorePolicy {
    pub(crate) fn new(socket: SocketChoice, status: &Status) -> RestorePolicy {
        let before = (status.policy, status.sharing);
        RestorePolicy { socket, before, now: before }
    }

    /// Sets policy and sharing; what is not given is set to its original value. A daemon that has ended meanwhile for
    /// lack of jobs is started again.
    pub(crate) fn enter(&mut self, policy: Option<Policy>, sharing: Option<Sharing>) -> Result<Client, Failure> {
        let mut client = connect_or_start(&self.socket, None)?;
        let wanted = (policy.unwrap_or(self.before.0), sharing.unwrap_or(self.before.1));
        if wanted != self.now {
            client.set_policy(&request(wanted)).map_err(|error| {
                let failure = Failure::from(error);
                let (policy, sharing) = (wanted.0.name(), wanted.1.name());
                let message = format!("the policy {policy}, {sharing} could not be set: {}", failure.message);
                Failure { message, ..failure }
            })?;
            self.now = wanted;
        }
        Ok(client)
    }

    pub(crate) fn restore(&mut self) {
        if self.now == self.before {
            return;
        }
        let restored = connect_or_start(&self.socket, None)
            .and_then(|mut client| client.set_policy(&request(self.before)).map(drop));
        match restored {
            Ok(()) => self.now = self.before,
            Err(error) => say(&format!("the machine's policy could not be restored: {error}")),
        }
    }
}

fn request((policy, sharing): (Policy, Sharing)) -> PolicyRequest {
    PolicyRequest { policy: Some(policy), sharing: Some(sharing), ..PolicyRequest::default() }
}

impl Drop for RestorePolicy {
    fn drop(&mut self) {
        self.restore();
    }
}
