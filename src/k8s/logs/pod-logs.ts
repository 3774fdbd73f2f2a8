import type { Log } from '../../contracts/log.ts';
import {
  LogsGone,
  NotJoinable,
  type LogBatch,
  type LogLine,
  type LogRequest,
  type LogTail,
} from '../../contracts/sandbox-driver.ts';
import type { ApiClient } from '../api/api-calls.ts';
import { ApiRefused, isAbsent } from '../api/api-errors.ts';
import { cleaned } from '../sandboxes/cleaned-message.ts';
import {
  BEGINNING,
  LogResumption,
  placeAfter,
  placeOf,
  placeText,
  type LogPiece,
  type LogPlace,
} from './log-place.ts';
import { LogSource, type LogSourceTerms } from './log-source.ts';
import { LogTailWindow } from './log-tail.ts';
import {
  NOT_KNOWN_YET,
  presenceOf,
  type PodPresence,
  type PodTarget,
} from '../sandboxes/pods/pod-presence.ts';
import { SeenLogs } from './seen-logs.ts';

export interface PodLogsDeps extends LogSourceTerms {
  readonly api: ApiClient;
  readonly log: Log;
  readonly silenceMs?: number;
}

const TAIL_WITHIN_MS = 20_000;
/** Long lines reduce the number of lines. */
const MOST_READ = 32 << 20;
const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5_000;
const SILENCE_MS = 20_000;

/**
 * A kubelet keeps a log as long as the Pod, and of a busy Pod only the last file (10 MiB by
 * default). Reports rotated lines if this replica had read before them.
 */
export class PodLogs {
  readonly #api: ApiClient;
  readonly #log: Log;
  readonly #source: LogSource;
  readonly #seen = new SeenLogs();
  readonly #silenceMs: number;
  readonly #wakers = new Map<string, Set<() => void>>();

  constructor(deps: PodLogsDeps) {
    this.#api = deps.api;
    this.#log = deps.log;
    this.#silenceMs = deps.silenceMs ?? SILENCE_MS;
    this.#source = new LogSource(deps);
  }

  /** Rejects with NotJoinable if the log is unreadable now. */
  async tail(target: PodTarget, request: LogRequest): Promise<LogTail> {
    try {
      const { state, why } = await presenceOf(this.#api, target);
      if (state === 'gone') throw gone(why);
      const window = state === 'waiting' ? undefined : await this.#window(target, request);
      const beginning =
        request.since === undefined ? BEGINNING : { ...BEGINNING, time: timeOf(request.since) };
      if (!window) return { lines: [], truncated: false, next: placeText(beginning) };
      const span = { first: window.leastTime, last: window.place.time };
      if (this.#seen.lacks(target, { since: beginning.time, first: span.first }))
        window.truncated = true;
      this.#seen.saw(target, span);
      if (window.place === BEGINNING)
        return { lines: [], truncated: window.truncated, next: placeText(beginning) };
      return window.tail(
        placeText(
          window.isPlaceUnsure ? await this.#lastPlace(target, window.place) : window.place,
        ),
      );
    } catch (error) {
      if (error instanceof LogsGone) throw error;
      if (isAbsent(error, 'pods')) throw await this.#absent(target, error);
      throw new NotJoinable(
        "the sandbox's log can't be read now: " +
          `${cleaned(error instanceof Error ? error.message : String(error))}`,
        { cause: error },
      );
    }
  }

  /** Survives broken links without repeating or dropping lines. */
  async *follow(
    target: PodTarget,
    after: string,
    signal: AbortSignal,
  ): AsyncGenerator<LogBatch, void, undefined> {
    let place = placeOf(after);
    let pauseMs = FIRST_PAUSE_MS;
    for (let isFirst = true; !signal.aborted; isFirst = false) {
      const presence = await this.#presence(target);
      if (presence?.state === 'gone') {
        if (isFirst) throw gone(presence.why);
        return;
      }
      const isOver = hasEnded(presence);
      const wakeable = this.#wakeable(target.uid);
      const silence = new LogSilence(this.#silenceMs, () => this.#hasMore(target, place));
      const either = AbortSignal.any([signal, wakeable.woken, silence.missed]);
      try {
        if (presence && presence.state !== 'waiting') {
          silence.begin();
          for await (const step of this.#from(place, target, {
            follow: !isOver,
            signal: isOver ? AbortSignal.any([signal, silence.missed]) : either,
          })) {
            place = step.place;
            pauseMs = FIRST_PAUSE_MS;
            silence.end();
            yield step.batch;
            silence.begin();
          }
          if (isOver) return;
        }
        await pause(pauseMs, either);
      } catch (error) {
        if (!either.aborted) this.#log.debug({ pod: target.name, error }, 'log-not-followed');
        await pause(pauseMs, either);
      } finally {
        silence.end();
        wakeable.leave();
      }
      pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS);
    }
  }

  /** The Pod or its container has ended: followers check now, whatever the kubelet says. */
  gone(uid: string): void {
    for (const wake of this.#wakers.get(uid) ?? []) wake();
  }

  async stop(): Promise<void> {
    await this.#source.stop();
  }

  async #window(
    target: PodTarget,
    { tailLines, since, limitBytes }: LogRequest,
  ): Promise<LogTailWindow> {
    const signal = AbortSignal.timeout(TAIL_WITHIN_MS);
    const from = since === undefined ? '' : timeOf(since);
    for (let lines = tailLines; ; lines = Math.ceil(lines / 10)) {
      const window = new LogTailWindow({ tailLines: lines, limitBytes, since: from });
      // One more line shows whether there are older ones.
      const query = { tailLines: lines + 1, sinceTime: from === '' ? undefined : secondOf(from) };
      for await (const pieces of this.#source.read(target, query, signal)) {
        for (const piece of pieces) window.push(piece);
        if (window.size > MOST_READ) break;
      }
      if (lines < tailLines || window.size > MOST_READ) window.truncated = true;
      if (window.size <= MOST_READ || lines === 1) return window;
    }
  }

  async #absent(target: PodTarget, cause: unknown): Promise<Error> {
    const presence = await this.#presence(target);
    if (presence?.state === 'gone') return gone(presence.why);
    return new NotJoinable(`the sandbox's log can't be read now: ${NOT_KNOWN_YET}`, { cause });
  }

  async #lastPlace(target: PodTarget, { time }: LogPlace): Promise<LogPlace> {
    const all = new LogTailWindow({ tailLines: 1, limitBytes: 1, since: '' });
    for await (const pieces of this.#source.read(
      target,
      { sinceTime: secondOf(time) },
      AbortSignal.timeout(TAIL_WITHIN_MS),
    )) {
      for (const piece of pieces) if (piece.time <= time) all.push(piece);
      if (all.size > MOST_READ) break;
    }
    return all.place;
  }

  /** True too if the kubelet refuses to answer, since the Pod has then changed. */
  async #hasMore(target: PodTarget, { time }: LogPlace): Promise<boolean> {
    try {
      let last = '';
      for await (const pieces of this.#source.read(
        target,
        { tailLines: 1 },
        AbortSignal.timeout(TAIL_WITHIN_MS),
      ))
        last = pieces.at(-1)?.time ?? last;
      return last > time;
    } catch (error) {
      return error instanceof ApiRefused;
    }
  }

  /** undefined if the API server does not answer */
  async #presence(target: PodTarget): Promise<PodPresence | undefined> {
    try {
      return await presenceOf(this.#api, target);
    } catch (error) {
      this.#log.debug({ pod: target.name, error }, 'pod-not-read');
      return undefined;
    }
  }

  async *#from(
    from: LogPlace,
    target: PodTarget,
    { follow, signal }: { readonly follow: boolean; readonly signal: AbortSignal },
  ): AsyncGenerator<{ readonly batch: LogBatch; readonly place: LogPlace }, void, undefined> {
    const resumption = new LogResumption(from);
    const query = { follow, sinceTime: from.time === '' ? undefined : secondOf(from.time) };
    let place = from;
    for await (const pieces of this.#source.read(target, query, signal)) {
      const wasBroken = resumption.isBroken;
      const lines: LogLine[] = [];
      for (const piece of pieces) {
        const admitted: LogPiece | undefined = resumption.admit(piece);
        if (!admitted) continue;
        place = placeAfter(place, admitted);
        lines.push({ ...admitted, next: placeText(place) });
      }
      this.#seen.saw(target, { first: lines[0]?.time ?? '', last: place.time });
      if (lines.length > 0)
        yield { batch: { lines, skipped: resumption.isBroken && !wasBroken }, place };
    }
  }

  #wakeable(uid: string): { readonly woken: AbortSignal; leave(): void } {
    const controller = new AbortController();
    const wake = (): void => {
      controller.abort();
    };
    const wakers = this.#wakers.get(uid) ?? new Set();
    this.#wakers.set(uid, wakers.add(wake));
    const leave = (): void => {
      wakers.delete(wake);
      if (wakers.size === 0 && this.#wakers.get(uid) === wakers) this.#wakers.delete(uid);
    };
    return { woken: controller.signal, leave };
  }
}

const hasEnded = (presence: PodPresence | undefined): boolean =>
  presence?.state === 'ended' || presence?.state === 'container-ended';

const gone = (why: string): LogsGone =>
  new LogsGone(`a sandbox's log is deleted with its Pod (${why}); use the cluster's own log store`);

const timeOf = (since: number): string => new Date(since).toISOString().replace('Z', '000000Z');

/** Kubelets take whole seconds. */
const secondOf = (time: string): string => `${time.slice(0, '2026-01-31T12:00:00'.length)}Z`;

const pause = (ms: number, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });

/**
 * Kubelets sometimes lose track of a log during rotation, and links die. The link of a quiet log
 * stays open: only it shows whether the previous file had more lines.
 */
class LogSilence {
  readonly #afterMs: number;
  readonly #hasMore: () => Promise<boolean>;
  readonly #missed = new AbortController();
  #timer: NodeJS.Timeout | undefined;
  /** A wait may end before its check does. */
  #wait = 0;

  /** `hasMore` must not reject. */
  constructor(afterMs: number, hasMore: () => Promise<boolean>) {
    this.#afterMs = afterMs;
    this.#hasMore = hasMore;
  }

  /** Aborts when lines are missing. */
  get missed(): AbortSignal {
    return this.#missed.signal;
  }

  begin(): void {
    this.end();
    this.#timer = setTimeout(() => {
      void this.#look();
    }, this.#afterMs).unref();
  }

  end(): void {
    clearTimeout(this.#timer);
    this.#wait += 1;
  }

  async #look(): Promise<void> {
    const wait = this.#wait;
    const hasMore = await this.#hasMore();
    if (wait !== this.#wait) return;
    if (hasMore) this.#missed.abort();
    else this.begin();
  }
}
