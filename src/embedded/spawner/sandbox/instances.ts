import { FairSlots } from '../../../lib/fair-slots.ts';
import { removeHome } from './bare-homes.ts';
import { freeze, isFrozen, thaw } from './freezer.ts';
import { Instance, type InstanceDeps } from './instance.ts';
import type { JoinPlace } from './join-place.ts';
import { isAlive } from './process-identity.ts';
import type { Vitals } from '../../../model/sandbox.ts';
import type { InstanceReport, StartTerms } from '../protocol.ts';
import { probesOf, type Readiness } from '../probes/readiness.ts';

const MOST_WAITING = 4_096;
const MOST_WAITING_OF_TENANT = 1_024;

const NOBODY = { pid: 0, startTime: '0' };

interface Waiting {
  readonly image: string | undefined;
  readonly cancel: () => void;
}

/** Few sandboxes start at a time; the others wait, and tenants take turns. */
export class Instances {
  readonly #deps: () => InstanceDeps;
  readonly #readiness: Readiness;
  readonly #instances = new Map<string, Instance>();
  readonly #waiting = new Map<string, Waiting>();
  readonly #frozen = new Map<string, readonly string[]>();
  readonly #programsEnded = new Map<string, string>();
  readonly #turns: FairSlots;

  constructor(options: {
    readonly deps: () => InstanceDeps;
    readonly parallel: () => number;
    readonly readiness: Readiness;
  }) {
    this.#deps = options.deps;
    this.#readiness = options.readiness;
    // Starts are short, so one tenant may use all slots.
    this.#turns = new FairSlots({
      most: options.parallel,
      mostOfTenant: (most) => most,
      mostWaiting: MOST_WAITING,
      mostWaitingOfTenant: MOST_WAITING_OF_TENANT,
    });
  }

  get someBare(): boolean {
    return [...this.#instances.values()].some(({ isBare }) => isBare);
  }

  get count(): number {
    return this.#instances.size + this.#waiting.size;
  }

  /** Adopts running sandboxes and cleans up the others. */
  async adopt(): Promise<void> {
    const deps = this.#deps();
    const swept: Promise<void>[] = [];
    for (const { id, note, running, wasReady } of deps.notes.all()) {
      if (!note || note.id !== id) swept.push(deps.notes.remove(id));
      else if (running && note.bootId === deps.terms.bootId && isAlive(running.init)) {
        if (note.probes)
          this.#readiness.expect(id, { tenant: note.tenant, probes: note.probes, wasReady });
        this.#keep(Instance.adopt(note, running, this.#reporting()));
        if (isFrozen(note.cgroups)) this.#frozen.set(id, note.cgroups);
        if (note.probes)
          this.#readiness.take(id, { kind: 'available', startedAt: running.startedAt });
      } else if (note.bootId === deps.terms.bootId) {
        thaw(note.cgroups);
        swept.push(Instance.sweep(note, running, deps));
      } else swept.push(deps.notes.remove(id));
    }
    await Promise.all(swept);
    // A torn note does not list its cgroups.
    for (const [id, cgroups] of deps.cgroups.all()) {
      if (this.#instances.has(id)) continue;
      thaw(cgroups);
      await Instance.sweep(
        {
          id,
          tenant: '',
          bootId: deps.terms.bootId,
          outer: NOBODY,
          uid: NOBODY.pid,
          cgroups,
          env: {},
          workingDir: '',
        },
        undefined,
        deps,
      );
    }
    for (const home of deps.homes.others(new Set(this.#instances.keys()))) {
      await removeHome(home).catch((error: unknown) =>
        deps.log.warn('former-sandbox-folder-not-removed', { error: String(error) }),
      );
    }
  }

  /** Resolves with true once the launcher has its order, and with false if the queue is full. */
  async start(id: string, terms: StartTerms): Promise<boolean> {
    if (this.#instances.has(id) || this.#waiting.has(id)) return true;
    return await new Promise<boolean>((resolve) => {
      const takeBack = this.#turns.request(terms.tenant, (release) => {
        this.#waiting.delete(id);
        this.#begin(id, terms, release);
        resolve(true);
      });
      if (!takeBack) return resolve(false);
      if (this.#instances.has(id)) return;
      const cancel = (): void => {
        takeBack();
        resolve(true);
      };
      this.#waiting.set(id, { image: terms.image?.key, cancel });
    });
  }

  /** Returns false for an unknown id. */
  kill(id: string): boolean {
    const waiting = this.#waiting.get(id);
    if (waiting) {
      this.#waiting.delete(id);
      waiting.cancel();
      this.#readiness.take(id, {
        kind: 'gone',
        exitCode: null,
        reason: 'killed before it started',
      });
      return true;
    }
    const instance = this.#instances.get(id);
    instance?.kill();
    thaw(this.#frozen.get(id) ?? []); // v1 can't kill a frozen process
    return instance !== undefined;
  }

  get ids(): ReadonlySet<string> {
    return new Set(this.#instances.keys());
  }

  vitalsOf(id: string): Vitals | undefined {
    return this.#readiness.vitalsOf(id) ?? this.#instances.get(id)?.vitals;
  }

  noteProgramsEnded(id: string, why: string): void {
    if (this.#instances.has(id)) this.#programsEnded.set(id, why);
  }

  placeOf(id: string): JoinPlace | undefined {
    return this.#instances.get(id)?.place;
  }

  /** Resolves with false unless the instance runs. After a rejection it runs. */
  async freeze(id: string, frozen: boolean): Promise<boolean> {
    const cgroups = this.placeOf(id)?.cgroups;
    if (!cgroups) return false;
    if (frozen) {
      this.#frozen.set(id, cgroups);
      await freeze(cgroups).catch((error: unknown) => {
        this.#frozen.delete(id);
        throw error;
      });
    } else {
      thaw(cgroups);
      this.#frozen.delete(id);
    }
    return true;
  }

  isFrozen(id: string): boolean {
    return this.#frozen.has(id);
  }

  list(): readonly InstanceReport[] {
    const programs = new Map(this.#programsEnded);
    this.#programsEnded.clear();
    const waiting = [...this.#waiting].map(([id, { image }]): InstanceReport => ({
      id,
      vitals: { kind: 'starting' },
      image,
    }));
    return [
      ...waiting,
      ...[...this.#instances.values()].map(({ id, vitals, image }) => ({
        id,
        vitals: this.#readiness.vitalsOf(id) ?? vitals,
        image,
        frozen: this.#frozen.has(id) || undefined,
        programsEnded: programs.has(id) ? (programs.get(id) ?? '') : undefined,
      })),
    ];
  }

  #begin(id: string, terms: StartTerms, release: () => void): void {
    const probes = probesOf(terms.definition);
    if (probes) this.#readiness.expect(id, { tenant: terms.tenant, probes });
    const instance = Instance.start(id, terms, this.#reporting());
    this.#keep(instance);
    void instance.settled.then(release);
  }

  #keep(instance: Instance): void {
    this.#instances.set(instance.id, instance);
    void instance.reclaimed.then(() => {
      this.#instances.delete(instance.id);
      this.#frozen.delete(instance.id);
    });
  }

  #reporting(): InstanceDeps {
    return { ...this.#deps(), report: (id, vitals) => this.#readiness.take(id, vitals) };
  }
}
