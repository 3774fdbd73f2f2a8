import { expect } from 'chai';
import fc from 'fast-check';
import { ApprovalMirror } from '../../src/actors/approval/approval-mirror.ts';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import type { ApprovalRecord } from '../../src/model/approvals/approval.ts';
import { Refusal } from '../../src/model/refusals.ts';
import { Grant } from '../../src/services/approvals/grant.ts';
import { MemoryApprovals } from '../support/fakes/memory-approvals.ts';
import { quietLog } from '../support/fakes/quiet-log.ts';
import { TestClock } from '../support/fakes/test-clock.ts';
import { checkAsync } from './check.ts';
import { runs } from '../support/harness/runs.ts';

const FATES = [
  'none',
  'before the use is noted',
  'once the use is noted',
  'the note has an unknown outcome',
  'once the effect is there',
  'once the answer is made',
  'before the end is noted',
  'refused',
] as const;
type Fate = (typeof FATES)[number];

class Killed extends Error {}

/** Some replicas die while they carry out the grant's effect. */
class World {
  readonly records = new MemoryApprovals();
  readonly clock = new TestClock();
  readonly mirror = new ApprovalMirror({
    approvals: this.records,
    clock: this.clock,
    log: quietLog,
  });
  /** By the operation's id if it is repeatable; others each count. */
  readonly effects: string[] = [];
  readonly #isRepeatable: boolean;
  #fate: Fate = 'none';

  constructor(isRepeatable: boolean) {
    this.#isRepeatable = isRepeatable;
    this.records.written = ({ use }) => {
      if (!use) return;
      if (use.settled === !this.#isRepeatable) this.#falls('once the use is noted');
      if (this.#fate === 'the note has an unknown outcome') throw new OutcomeUnknown();
    };
  }

  async begin(): Promise<ApprovalRecord> {
    await this.mirror.start();
    return await this.records.create({
      id: '019b7c4e-0000-7000-8000-000000000001',
      principal: {
        namespace: 'n',
        team: 't',
        user: 'u',
        keyId: 'k',
        role: 'user',
        persons: ['u'],
      },
      operation: 'createPool',
      onceOnly: false,
      method: 'POST',
      path: '/sandboxpools',
      route: 'REST POST /sandboxpools',
      namespace: 'n',
      query: '',
      headers: {},
      summary: '',
      binding: 'b',
      createdAt: this.clock.now(),
      expiresAt: this.clock.now() + 600_000,
      status: 'approved',
      scope: 'once',
    });
  }

  /** Rejections reach the client, or the replica died. */
  async attempt(id: string, fate: Fate): Promise<void> {
    this.#fate = fate;
    const record = this.mirror.get(id);
    if (!record) throw new Error('the approval is gone');
    const grant = new Grant(
      { approvals: this.records, mirror: this.mirror, clock: this.clock, log: quietLog },
      record,
    );
    try {
      this.#falls('before the use is noted');
      await grant.use({
        isRepeatable: this.#isRepeatable,
        hadNoEffect: (error) => error instanceof Refusal,
        carryOut: async () => {
          if (this.#fate === 'refused') throw new Refusal('CONFLICT', 'no');
          if (!this.#isRepeatable || !this.effects.includes(id)) this.effects.push(id);
          this.#falls('once the effect is there');
        },
      });
      this.#falls('once the answer is made');
      if (this.#fate === 'before the end is noted') this.records.away = true;
      if (this.#isRepeatable) await grant.settle();
    } catch (error) {
      if (!(error instanceof Killed || error instanceof OutcomeUnknown || error instanceof Refusal))
        throw error;
    } finally {
      this.records.away = false;
      this.#fate = 'none';
    }
  }

  #falls(fate: Fate): void {
    if (this.#fate === fate) throw new Killed();
  }
}

describe('an approval for one effect', () => {
  it('has one effect per use, whichever replicas die at whichever step', async () => {
    await checkAsync(
      fc.asyncProperty(fc.array(fc.constantFrom(...FATES), { maxLength: 6 }), async (fates) => {
        const world = new World(true);
        const { id } = await world.begin();
        for (const fate of fates) await world.attempt(id, fate);
        await world.attempt(id, 'none');
        await world.attempt(id, 'none');

        expect(world.effects).to.deep.equal([id]);
        expect(world.mirror.get(id)).to.deep.include({ status: 'consumed' });
        expect(world.mirror.get(id)?.use?.settled).to.equal(true);
      }),
      { numRuns: runs(300) },
    );
  });

  it('has at most one effect if it cannot be repeated', async () => {
    await checkAsync(
      fc.asyncProperty(fc.array(fc.constantFrom(...FATES), { maxLength: 6 }), async (fates) => {
        const world = new World(false);
        const { id } = await world.begin();
        for (const fate of fates) await world.attempt(id, fate);
        await world.attempt(id, 'none');

        expect(world.effects.length).to.be.at.most(1);
        expect(world.mirror.get(id)?.status).to.equal('consumed');
      }),
      { numRuns: runs(300) },
    );
  });

  it('has one effect if many callers use it at once', async () => {
    const world = new World(false);
    const { id } = await world.begin();

    await Promise.all(Array.from({ length: 50 }, () => world.attempt(id, 'none')));

    expect(world.effects).to.have.length(1);
  });
});
