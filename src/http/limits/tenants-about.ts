/** Another tenant is about for so long after each of its requests. */
const ABOUT_MS = 1_000;

/** Who asks these days: whether a tenant has the event loop for itself. */
export class TenantsAbout {
  readonly #now: () => number;
  /** The last two that asked, and when. */
  #latest = { tenant: '', at: -ABOUT_MS };
  #before = { tenant: '', at: -ABOUT_MS };

  /** `now`: milliseconds that only grow. */
  constructor(now: () => number) {
    this.#now = now;
  }

  note(tenant: string): void {
    const at = this.#now();
    if (this.#latest.tenant === tenant) this.#latest.at = at;
    else [this.#before, this.#latest] = [this.#latest, { tenant, at }];
  }

  othersThan(tenant: string): boolean {
    const other = this.#latest.tenant === tenant ? this.#before : this.#latest;
    return this.#now() - other.at < ABOUT_MS;
  }
}
