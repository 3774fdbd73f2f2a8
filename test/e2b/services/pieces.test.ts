import { expect } from 'chai';
import fc from 'fast-check';
import { SILENCE, keepaliveMs, withSilences } from '../../../src/http/e2b/services/keepalives.ts';
import { WholeCharacters } from '../../../src/http/e2b/services/process/process-events.ts';
import { TestClock } from '../../support/fakes/test-clock.ts';
import { eventually } from '../../support/harness/eventually.ts';
import { runs } from '../../support/harness/runs.ts';

describe('pieces of process output', () => {
  const piecesOf = (chunks: readonly Buffer[], most: number): readonly Uint8Array[] => {
    const whole = new WholeCharacters(most);
    return [...chunks.flatMap((chunk) => [...whole.pieces(chunk)]), ...whole.rest()];
  };
  /** The bytes, cut where the numbers say. */
  const cut = (bytes: Buffer, at: readonly number[]): readonly Buffer[] => {
    const places = [...at.map((place) => place % (bytes.length + 1)), bytes.length];
    places.sort((a, b) => a - b);
    return places.map((place, index) => bytes.subarray(places[index - 1] ?? 0, place));
  };

  it('are valid text one by one if the whole is, and lose nothing', () => {
    const property = fc.property(
      fc.string({ unit: 'grapheme' }),
      fc.array(fc.nat(200)),
      fc.integer({ min: 4, max: 40 }),
      (text, at, most) => {
        const pieces = piecesOf(cut(Buffer.from(text), at), most);
        const decoded = pieces.map((piece) => new TextDecoder().decode(piece)).join('');
        expect(decoded).to.equal(text.replace(/^\ufeff/, ''));
        expect(pieces.every(({ length }) => length > 0 && length <= most)).to.equal(true);
      },
    );
    fc.assert(property, { numRuns: runs(300) });
  });

  it('keep every byte that is not text', () => {
    const property = fc.property(
      fc.uint8Array({ maxLength: 200 }),
      fc.array(fc.nat(200)),
      (bytes, at) => {
        const pieces = piecesOf(cut(Buffer.from(bytes), at), 16);
        expect(Buffer.concat(pieces)).to.deep.equal(Buffer.from(bytes));
      },
    );
    fc.assert(property, { numRuns: runs(300) });
  });
});

describe('keepalives of a stream', () => {
  it('are sent after each interval without data', async () => {
    const clock = new TestClock();
    let say: (text: string) => void = () => {};
    const items = (async function* () {
      yield await new Promise<string>((resolve) => {
        say = resolve;
      });
    })();
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const item of withSilences(items, { clock, everyMs: 1_000 })) seen.push(item);
    })();

    for (const count of [1, 2]) {
      await eventually(() => clock.waiting === 1, 'it waits');
      clock.advance(999);
      expect(seen).to.have.length(count - 1);
      clock.advance(1);
      await eventually(() => seen.length === count, 'silence is told');
    }
    await eventually(() => clock.waiting === 1, 'it waits again');
    say('word');
    await reading;
    expect(seen).to.deep.equal([SILENCE, SILENCE, 'word']);
    expect(clock.waiting).to.equal(0);
  });

  it('count from the last data, with a single timer', async () => {
    const clock = new TestClock();
    let armed = 0;
    const at: TestClock['at'] = (moment, due) => {
      armed += 1;
      return clock.at(moment, due);
    };
    const said = new Said();
    const silences = withSilences(said.words(), {
      clock: { now: () => clock.now(), at },
      ...{ everyMs: 1_000, endsAt: clock.now() + 3_500 },
    });
    const seen: unknown[] = [];
    const reading = (async () => {
      for await (const item of silences) seen.push(item === SILENCE ? clock.now() : item);
    })();
    reading.catch(() => {}); // looked at below

    const began = clock.now();
    await eventually(() => armed === 1, 'it waits');
    for (const word of ['a', 'b', 'c']) {
      clock.advance(200);
      said.say(word);
      await eventually(() => seen.includes(word) && said.isAsked, 'it came');
    }
    expect(armed).to.equal(1);
    for (const count of [4, 5]) {
      clock.advance(1_000);
      await eventually(() => seen.length === count && clock.waiting === 1, 'silence is told');
    }
    clock.advance(900);
    expect(await reading.catch((error: unknown) => error)).to.have.property('code', 4);
    expect(seen).to.deep.equal(['a', 'b', 'c', began + 1_600, began + 2_600]);
    expect(clock.waiting).to.equal(0);
  });

  it('fail with the stream, and leave no timer when they are cancelled', async () => {
    const clock = new TestClock();
    const failing = (async function* () {
      yield 1;
      throw new Error('broken');
    })();
    const seen: unknown[] = [];
    let failure: unknown;
    try {
      for await (const item of withSilences(failing, { clock, everyMs: 1_000 })) seen.push(item);
    } catch (error) {
      failure = error;
    }
    expect(seen).to.deep.equal([1]);
    expect(failure).to.have.property('message', 'broken');
    expect(clock.waiting).to.equal(0);
  });

  it('have the interval of the header, up to an hour', () => {
    const asked = [null, '50', '0', '', 'x', '-1', '1e9', '999999'];
    expect(asked.map(keepaliveMs)).to.deep.equal([
      ...[90_000, 50_000, 1_000, 90_000, 90_000, 90_000, 90_000, 3_600_000],
    ]);
  });
});

/** Words that are said one by one. */
class Said {
  #say: ((word: string) => void) | undefined;

  get isAsked(): boolean {
    return this.#say !== undefined;
  }

  say(word: string): void {
    const say = this.#say;
    this.#say = undefined;
    say?.(word);
  }

  async *words(): AsyncGenerator<string, void, undefined> {
    for (;;)
      yield await new Promise<string>((resolve) => {
        this.#say = resolve;
      });
  }
}
