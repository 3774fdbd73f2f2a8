import type { SandboxDriver } from '../../../src/contracts/sandbox-driver.ts';
import type { InstanceFact } from '../../../src/model/sandbox.ts';
import { FakeSandboxDriver } from './fake-sandbox-driver.ts';

export interface DriverView extends SandboxDriver {
  /** Reports wait until `catchUp`: the mirror is behind. */
  lag(): void;
  catchUp(): void;
}

/** Every replica gets all reports, including those of writes. Uncached reads are current. */
export class SharedDriver {
  readonly truth: FakeSandboxDriver;
  readonly #views: ((fact: InstanceFact) => void)[] = [];

  constructor(truth = new FakeSandboxDriver({ reportsWrites: true })) {
    this.truth = truth;
  }

  view(): DriverView {
    const { truth } = this;
    let late: InstanceFact[] | undefined;
    let report: (fact: InstanceFact) => void = () => undefined;
    const tell = (fact: InstanceFact): void => {
      if (late) late.push(fact);
      else report(fact);
    };
    return {
      processes: truth.processes,
      describe: () => truth.describe(),
      watch: async (to) => {
        report = to;
        this.#views.push(tell);
        await truth.watch((fact) => {
          for (const view of this.#views) view(fact);
        });
      },
      check: (definition) => truth.check(definition),
      expect: () => truth.expect(),
      launch: (...call) => truth.launch(...call),
      claim: (...call) => truth.claim(...call),
      amend: (...call) => truth.amend(...call),
      bump: (...call) => truth.bump(...call),
      retire: (id, seen) => truth.retire(id, seen),
      release: (...call) => truth.release(...call),
      forget: (...call) => truth.forget(...call),
      read: (id) => truth.read(id),
      confirm: (id) => truth.read(id),
      idle: async (poolUid) => {
        const facts = await Promise.all(
          (await truth.records.all()).map(({ record }) => truth.read(record.id)),
        );
        return facts.filter(({ record }) => record?.poolUid === poolUid && record.state === 'idle');
      },
      findClaimByKey: async (markKey) => {
        const found = (await truth.records.all()).filter(
          ({ record }) => record.claim?.mark?.key === markKey,
        );
        return await Promise.all(found.map(({ record }) => truth.read(record.id)));
      },
      caughtUp: async () => {
        await truth.settled();
        for (const fact of late?.splice(0) ?? []) report(fact);
      },
      exec: (...call) => truth.exec(...call),
      attach: (...call) => truth.attach(...call),
      logs: (...call) => truth.logs(...call),
      followLogs: (...call) => truth.followLogs(...call),
      probe: (id) => truth.probe(id),
      dial: (...call) => truth.dial(...call),
      files: truth.files,
      stop: async () => undefined,
      lag: () => {
        late ??= [];
      },
      catchUp: () => {
        const due = late ?? [];
        late = undefined;
        for (const fact of due) report(fact);
      },
    };
  }
}
