import { expect } from 'chai';
import { rejection } from '../support/harness/rejection.ts';
import fc from 'fast-check';
import { FairSlots, within } from '../../src/lib/fair-slots.ts';
import { check } from '../properties/check.ts';

const TENANTS = ['ann', 'bob', 'cat'] as const;

/** Slots whose tasks end when they are told to. */
class Slots {
  readonly slots: FairSlots;
  readonly begun: string[] = [];
  readonly underWay: { readonly tenant: string; readonly release: () => void }[] = [];

  constructor(
    most: number,
    mostOfTenant: number,
    mostWaiting = 1_000,
    mostWaitingOfTenant = 1_000,
  ) {
    this.slots = new FairSlots({
      most: () => most,
      mostOfTenant: () => mostOfTenant,
      mostWaiting,
      mostWaitingOfTenant,
    });
  }

  ask(tenant: string, name = tenant): (() => void) | undefined {
    return this.slots.request(tenant, (release) => {
      this.begun.push(name);
      this.underWay.push({ tenant, release });
    });
  }

  end(tenant?: string): void {
    const at = tenant === undefined ? 0 : this.underWay.findIndex((one) => one.tenant === tenant);
    this.underWay.splice(at, 1)[0]?.release();
  }
}

describe('slots shared by tenants', () => {
  it("go to tenants in turn, and to each tenant's tasks in order", () => {
    const shared = new Slots(1, 1);
    for (const name of ['a1', 'a2', 'a3']) shared.ask('ann', name);
    for (const name of ['b1', 'b2']) shared.ask('bob', name);
    for (let n = 0; n < 5; n++) shared.end();
    expect(shared.begun).to.deep.equal(['a1', 'a2', 'b1', 'a3', 'b2']);
    expect(shared.underWay).to.have.lengthOf(0);
  });

  it('never all go to a tenant with a share, even if its tasks never end', () => {
    const shared = new Slots(4, 3);
    for (let n = 0; n < 100; n++) shared.ask('ann');
    shared.ask('bob');
    expect(shared.begun).to.deep.equal(['ann', 'ann', 'ann', 'bob']);
  });

  it('refuse a tenant with too many waiting tasks, and all tenants beyond the total', () => {
    const shared = new Slots(1, 1, 3, 2);
    for (let n = 0; n < 3; n++) shared.ask('ann');
    expect(shared.ask('ann')).to.equal(undefined);
    expect(shared.ask('bob')).to.be.a('function');
    expect(shared.ask('cat')).to.equal(undefined);
    for (let n = 0; n < 4; n++) shared.end();
    expect(shared.begun).to.deep.equal(['ann', 'ann', 'bob', 'ann']);
  });

  it('skip cancelled tasks, and are released once', () => {
    const shared = new Slots(1, 1);
    let release: () => void = () => undefined;
    shared.slots.request('ann', (done) => {
      release = done;
    });
    shared.ask('ann', 'taken back')?.();
    shared.ask('bob');
    shared.ask('cat');
    release();
    release();
    expect(shared.begun).to.deep.equal(['bob']);
  });

  it('go to any number of tasks that end at once', () => {
    const shared = new Slots(1, 1, 100_000, 100_000);
    shared.ask('ann');
    let count = 0;
    for (let n = 0; n < 20_000; n++)
      shared.slots.request('bob', (release) => {
        count += 1;
        release();
      });
    shared.end();
    expect(count).to.equal(20_000);
  });

  const step = fc.record({
    tenant: fc.constantFrom(...TENANTS),
    does: fc.constantFrom('ask', 'ask', 'end', 'end of'),
  });

  it("serve every waiting task within the limits, without two turns of a tenant before another's", () => {
    check(
      fc.property(
        fc.integer({ min: 1, max: 5 }),
        fc.integer({ min: 1, max: 5 }),
        fc.array(step, { maxLength: 40, size: 'max' }),
        (most, ofTenant, steps) => {
          const shared = new Slots(most, ofTenant);
          const waiting = new Map<string, number>();
          let seen = 0;
          const held = (tenant: string): number =>
            shared.underWay.filter((one) => one.tenant === tenant).length;
          /** By tenant that waits: what others began since its first one came to the front. */
          const passed = new Map<string, string[]>();
          for (const { tenant, does } of steps) {
            if (does === 'ask') {
              shared.ask(tenant);
              waiting.set(tenant, (waiting.get(tenant) ?? 0) + 1);
            } else if (does === 'end') shared.end();
            else if (held(tenant) > 0) shared.end(tenant);
            for (; seen < shared.begun.length; seen++) {
              const began = shared.begun[seen] ?? '';
              waiting.set(began, (waiting.get(began) ?? 0) - 1);
              passed.set(began, []);
              for (const [other, count] of waiting)
                if (other !== began && count > 0 && held(other) < ofTenant)
                  passed.get(other)?.push(began);
            }
            for (const each of TENANTS) {
              expect(held(each)).to.be.at.most(ofTenant);
              const by = passed.get(each) ?? [];
              for (const other of TENANTS)
                expect(
                  by.filter((one) => one === other).length,
                  `${each} was passed over`,
                ).to.be.at.most(most + 1);
              if (!passed.has(each)) passed.set(each, []);
              if ((waiting.get(each) ?? 0) === 0) passed.set(each, []);
              const isFree = shared.underWay.length < most && held(each) < ofTenant;
              expect(
                isFree && (waiting.get(each) ?? 0) > 0,
                `${each} waits beside a free slot`,
              ).to.equal(false);
            }
            expect(shared.underWay.length).to.be.at.most(most);
          }
        },
      ),
    );
  });

  it('are taken in time, or cancelled', async () => {
    const slots = new FairSlots({
      most: () => 1,
      mostOfTenant: (most) => most,
      mostWaiting: 1,
      mostWaitingOfTenant: 1,
    });
    const terms = {
      full: () => new Error('full'),
      late: () => new Error('late'),
      until: within(1),
    };
    const release = await slots.take('one', terms);
    const late = rejection(slots.take('one', terms));
    expect(await rejection(slots.take('two', terms))).to.have.property('message', 'full');
    expect(await late).to.have.property('message', 'late');
    const next = slots.take('two', { full: () => new Error('full') });
    release();
    (await next)();
    expect(await slots.take('one', terms)).to.be.a('function');
  });
});
