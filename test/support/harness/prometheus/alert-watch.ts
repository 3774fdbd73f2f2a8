import { seriesOf } from '../exposition.ts';
import { alertRules, RuleBook } from './alert-rules.ts';
import { RecordedSeries } from './recorded-series.ts';
import { NEVER_COMES_MS } from '../eventually.ts';

/** By `instance`, the current GET /metrics. Rejects without an answer. */
export type Scraped = Readonly<Record<string, () => Promise<string>>>;

const ANSWER_MS = NEVER_COMES_MS;
const INTERVAL_MS = 200;
/** Longer than any range of a rule. */
const QUIET_SECONDS = 3_600;

/**
 * Scrapes real daemons and evaluates the rules. A daemon that does not answer has no further
 * series. Ignores `for`, which promtool tests.
 */
export class AlertWatch {
  readonly #daemons: Scraped;
  readonly #rules = new RuleBook();
  readonly #asked = new Set(
    alertRules().flatMap(({ expr }) => expr.match(/\b[a-z]+_[a-z0-9_]+\b/g) ?? []),
  );
  readonly #series = new RecordedSeries();
  #skipped = 0;
  #last = Number.NEGATIVE_INFINITY;

  constructor(daemons: Scraped) {
    this.#daemons = daemons;
  }

  /** After scraping all of them. */
  async look(alert: string): Promise<boolean> {
    await this.#scrape();
    return this.#rules.holds(alert, this.#series, this.#last).length > 0;
  }

  async fires(alert: string, withinMs = NEVER_COMES_MS): Promise<void> {
    await this.#until(() => this.look(alert), { what: `${alert} fires`, withinMs });
  }

  async clears(alert: string, withinMs = NEVER_COMES_MS): Promise<void> {
    await this.#until(async () => !(await this.look(alert)), { what: `${alert} clears`, withinMs });
  }

  /** Moves the rules' time by an hour, so that earlier counts leave their ranges. */
  async anHourLater(): Promise<void> {
    this.#skipped += QUIET_SECONDS;
    await this.#scrape();
  }

  async #until(
    isSo: () => Promise<boolean>,
    { what, withinMs }: { readonly what: string; readonly withinMs: number },
  ): Promise<void> {
    const deadline = performance.now() + withinMs;
    while (!(await isSo())) {
      if (performance.now() > deadline) throw new Error(`not within ${withinMs} ms: ${what}`);
      await new Promise((resolve) => {
        setTimeout(resolve, INTERVAL_MS);
      });
    }
  }

  async #scrape(): Promise<void> {
    const told = await Promise.all(
      Object.entries(this.#daemons).map(async ([instance, ask]) => ({
        instance,
        text: await answerOf(ask),
      })),
    );
    this.#last = Math.max(performance.now() / 1_000 + this.#skipped, this.#last + 0.001);
    for (const { instance, text } of told)
      this.#series.scraped(
        this.#last,
        { job: 'sandpool', instance },
        text === undefined ? [] : seriesOf(text).all.filter(({ name }) => this.#asked.has(name)),
      );
  }
}

/** Empty after a timeout, as in Prometheus. */
const answerOf = async (ask: () => Promise<string>): Promise<string | undefined> => {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => {
      resolve(undefined);
    }, ANSWER_MS);
  });
  return await Promise.race([ask().catch(() => undefined), late]).finally(() => {
    clearTimeout(timer);
  });
};
