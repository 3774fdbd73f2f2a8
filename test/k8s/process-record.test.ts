import { expect } from 'chai';
import fc from 'fast-check';
import { OutcomeUnknown } from '../../src/contracts/sandbox-driver.ts';
import { readProcess, toldOf, wholeList } from '../../src/k8s/processes/process-record.ts';

const ORDER = {
  processId: 'a-1',
  tenant: 't',
  argv: ['echo', 'a\nb "c" é'],
  stdin: true,
  tag: 'T',
};
const told = toldOf(ORDER, 1_000);

describe('the record of a process in a Pod', () => {
  it('is known to be there, or not, by a list that is whole', () => {
    expect(wholeList('.\n', 9)).to.deep.equal(['']);
    expect(wholeList('one\ntwo\n.\n', 9)).to.deep.equal(['one', 'two', '']);
    expect(wholeList('one\ntwo\n.\n', 1)).to.deep.equal(['one']);
    for (const cut of ['', 'one\n', 'one\n.', 'one.\n'])
      expect(() => wholeList(cut, 9)).to.throw(OutcomeUnknown);
  });

  it('says what runs', () => {
    expect(readProcess(`pa-1 R 7 100.5 - 101 - ${told}`)).to.deep.equal({
      processId: 'a-1',
      pid: 7,
      argv: ORDER.argv,
      startedAt: 1_000,
      tag: 'T',
      tty: false,
      stdin: true,
      status: 'Running',
    });
  });

  it('says how and when it ended, by the clock of the start', () => {
    expect(readProcess(`pa-1 E 7 100.50 102.25 103 143 ${told}`)).to.include({
      status: 'Exited',
      exitCode: 143,
      signal: 'TERM',
      endedAt: 2_750,
    });
    expect(readProcess(`pa-1 E 7 1.0 2.0 3 124 ${told}`)).to.include({ exitCode: 124 });
  });

  it('says of one that nobody waited for that it was killed', () => {
    const fact = readProcess(`pa-1 L 7 100.50 - 103 - ${told}`);
    expect(fact).to.include({ status: 'Exited', exitCode: 137, signal: 'KILL' });
    expect(fact).to.not.have.property('endedAt');
  });

  it('has no moment that is none, and no code, whatever the sandbox has written', () => {
    for (const ended of ['9'.repeat(400), '9'.repeat(20), '.', '1.2.3'])
      expect(readProcess(`pa-1 E 7 1 ${ended} 3 0 ${told}`), ended)
        .to.include({ status: 'Exited', exitCode: 0 })
        .and.not.have.property('endedAt');
    expect(readProcess(`pa-1 E 7 1 2 3 - ${told}`)).to.include({ exitCode: 137 });
  });

  it('is nothing where the sandbox has written something else', () => {
    for (const line of [
      '',
      'pa-1 R 7 100.5 - 101 - {}',
      'pa-1 R 7 100.5 - 101 - {"argv":[1],"startedAt":1}',
      'pa-1 R 7 100.5 - 101 - {"argv":["a"],"startedAt":1e300}',
      `../x R 7 100.5 - 101 - ${told}`,
      `pa-1 X 7 100.5 - 101 - ${told}`,
    ])
      expect(readProcess(line), line).to.equal(undefined);
    fc.assert(fc.property(fc.string(), (line) => readProcess(line) === undefined));
  });
});
