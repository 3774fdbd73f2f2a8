import type { Fault } from './faults/fault.ts';
import type { Disturbance, Moment } from './history.ts';

/** Counts from the strike's begin, or the first repair. */
export interface Blow {
  readonly fault: Fault;
  readonly afterMs: number;
  readonly since?: 'strike' | 'mending';
}
export type Strike = readonly Blow[];

export interface StrikeTerms {
  readonly now: () => Moment;
  readonly replicas: number;
  readonly withinMs: number;
}

/** A lease's end and the next holder's barrier, on a busy machine. */
const TAKEOVER_MS = 8_000;

type Borne = Omit<Disturbance, 'led'> & Pick<Fault, 'others' | 'hinders'>;

/** Resolves once each fault is over; rejects then, or at the deadline, if one failed. */
export const strike = async (
  blows: Strike,
  { now, replicas, withinMs }: StrikeTerms,
): Promise<readonly Disturbance[]> => {
  let mend = (): void => undefined;
  const mending = new Promise<void>((resolve) => {
    mend = resolve;
  });
  const all = Promise.allSettled(
    blows.map(async (blow, n) => {
      const begins = blow.since === 'mending' ? mending : Promise.resolve();
      const onMending = n === 0 ? mend : (): void => undefined;
      // If the first fails, the others must not wait for ever.
      return await carryOut(blow, { now, begins, onMending }).finally(onMending);
    }),
  );
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`not mended within ${withinMs} ms: ${namesOf(blows)}`));
    }, withinMs);
  });
  const ends = await Promise.race([all, late]).finally(() => {
    clearTimeout(timer);
  });
  const borne = ends.map((end) => {
    if (end.status === 'rejected')
      throw new Error(`a fault could not be carried out, of: ${namesOf(blows)}`, {
        cause: end.reason,
      });
    return end.value;
  });
  return borne.map((one) => {
    const { others: _others, hinders: _hinders, ...disturbance } = one;
    return { ...disturbance, led: ledFrom(one, borne, replicas) };
  });
};

interface Course {
  readonly now: () => Moment;
  readonly begins: Promise<void>;
  readonly onMending: () => void;
}

const carryOut = async (
  { fault, afterMs }: Blow,
  { now, begins, onMending }: Course,
): Promise<Borne> => {
  await begins;
  await pause(afterMs);
  const from = now();
  await fault.begin();
  await pause(fault.lastsMs);
  onMending();
  await fault.end();
  const { kind, victim, others, hinders, removes = [], edits, namespace } = fault;
  return {
    kind,
    victim,
    others,
    from,
    to: now(),
    removed: removes,
    hinders,
    edited: edits,
    namespace,
  };
};

/** Then nobody takes over before they are over. */
const ledFrom = (
  { others, from, to }: Borne,
  borne: readonly Borne[],
  replicas: number,
): Moment => {
  const hindered = new Set(
    borne
      .filter((other) => other.from <= to && other.to >= from)
      .flatMap((other) => other.hinders ?? []),
  );
  return (others === 'wait' || hindered.size >= replicas ? to : from) + TAKEOVER_MS;
};

const namesOf = (blows: Strike): string =>
  blows.map(({ fault }) => `${fault.kind} (${fault.victim})`).join(', ');

const pause = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
