// Asks the server for one thing again and again: slower while it fails, not at all while nobody looks.

const SLOWEST_FACTOR = 5;
const TIMEOUT_MS = 8000;
const TOKEN_KEY = "replicator-token";

export class Polling {
  constructor(path, { everyMs, good, bad, refused, timeoutMs = TIMEOUT_MS }) {
    Object.assign(this, { path, everyMs, good, bad, refused, timeoutMs });
    this.failures = 0;
    this.timer = null;
    this.asking = null;
    document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(this.timer) : this.ask()));
  }

  // Never two questions at a time: a second caller waits for the first one's answer.
  ask() {
    clearTimeout(this.timer);
    this.asking ??= this.once().finally(() => {
      this.asking = null;
    });
    return this.asking;
  }

  async once() {
    try {
      const answer = await fetch(this.path, {
        headers: token() ? { Authorization: `Bearer ${token()}` } : {},
        cache: "no-store",
        signal: AbortSignal.timeout(this.timeoutMs),
      });
      if (answer.status === 401 || answer.status === 403) {
        this.refused(answer.status === 403);
        return;
      }
      if (!answer.ok) throw new Error(await reasonOf(answer));
      const body = await answer.json();
      this.failures = 0;
      this.good(body);
    } catch (problem) {
      this.failures += 1;
      const silent = problem instanceof TypeError || problem.name === "TimeoutError";
      this.bad(silent ? "The server does not answer" : problem.message, silent);
    }
    const factor = Math.min(SLOWEST_FACTOR, 2 ** Math.min(this.failures, 3));
    if (!document.hidden) this.timer = setTimeout(() => this.ask(), this.everyMs * factor);
  }
}

export function token() {
  return sessionStorage.getItem(TOKEN_KEY);
}

export function keepToken(value) {
  if (value) sessionStorage.setItem(TOKEN_KEY, value);
  else sessionStorage.removeItem(TOKEN_KEY);
}

async function reasonOf(answer) {
  const body = await answer.json().catch(() => null);
  return body?.error?.detail ?? `the server answered ${answer.status}`;
}
