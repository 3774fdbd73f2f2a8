import { expect } from 'chai';
import { NotJoinable, RecordConflict } from '../../../src/contracts/sandbox-driver.ts';
import { Pauses } from '../../../src/embedded/driver/pauses.ts';
import type { ClaimChange } from '../../../src/model/claim-change.ts';
import type { InstanceRecord } from '../../../src/model/sandbox.ts';
import { quietLog } from '../../support/fakes/quiet-log.ts';
import { rejection } from '../../support/harness/rejection.ts';

describe('a pause that fails', () => {
  it('leaves both record and sandbox running, even after a concurrent change', async () => {
    const ordered: (readonly [boolean, number | undefined])[] = [];
    let record = { id: 'i', revision: '1', state: 'claimed', claim: {} } as InstanceRecord;
    const amend = async (id: string, change: ClaimChange, seen: string) => {
      if (seen !== record.revision) throw new RecordConflict(`instance ${id} has moved`);
      const { pausedAt: _former, ...claim } = record.claim as { readonly pausedAt?: number };
      const pausedAt = 'pausedAt' in change ? change.pausedAt : _former;
      record = {
        ...record,
        revision: String(Number(record.revision) + 1),
        claim: { ...claim, ...(typeof pausedAt !== 'number' ? {} : { pausedAt }) },
      } as InstanceRecord;
      return record;
    };
    const pauses = new Pauses({
      records: {
        amend,
        read: async () => ({ record, definition: { containers: [] } as never }),
      },
      client: {
        hello: undefined,
        freeze: async (_id, frozen) => {
          ordered.push([frozen, record.claim?.pausedAt]);
          if (frozen) await amend('i', { idleTimeoutMs: 5 }, record.revision);
          throw new NotJoinable('one of its processes does not stop');
        },
      },
      log: quietLog,
    });

    expect(await rejection(pauses.amend('i', { pausedAt: 7 }, '1'))).to.be.instanceOf(NotJoinable);
    expect(record.claim).to.not.have.property('pausedAt');
    // A spawner that came meanwhile may have been told to hold it by the record that was.
    expect(ordered).to.deep.equal([
      [true, 7],
      [false, undefined],
    ]);
  });
});
