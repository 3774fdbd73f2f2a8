import { expect } from 'chai';
import fc from 'fast-check';
import {
  BASE62,
  blankApiKeys,
  formatApiKey,
  fromCompatibleForm,
  parseApiKey,
  toCompatibleForm,
} from '../../src/model/api-key-text.ts';

const base62 = (minLength: number, maxLength: number) =>
  fc.string({ unit: fc.constantFrom(...BASE62), minLength, maxLength });

describe('the text of an API key', () => {
  it('can be parsed back', () => {
    fc.assert(
      fc.property(base62(12, 32), base62(32, 64), (keyId, secret) => {
        expect(parseApiKey(formatApiKey({ keyId, secret }))).to.deep.equal({ keyId, secret });
      }),
    );
  });

  it('is invalid after a change of any character', () => {
    const key = formatApiKey({ keyId: 'A'.repeat(16), secret: '7'.repeat(43) });
    for (let at = 0; at < key.length; at += 1) {
      for (const other of ['0', 'Z', '_', 'é', '\n']) {
        if (key[at] !== other)
          expect(
            parseApiKey(key.slice(0, at) + other + key.slice(at + 1)),
            `${at} ${other}`,
          ).to.equal(undefined);
      }
    }
  });

  it('can be written in hexadecimal digits too, and parsed back', () => {
    const key = formatApiKey({ keyId: 'A'.repeat(16), secret: '7'.repeat(43) });

    const spelled = toCompatibleForm(key);

    expect(spelled).to.match(/^e2b_[0-9a-f]+$/);
    expect(fromCompatibleForm(spelled)).to.equal(key);
    expect(fromCompatibleForm(key)).to.equal(key);
    for (const none of ['e2b_0g', 'e2b_00', toCompatibleForm('a\r\nb'), toCompatibleForm('spk_a')])
      expect(fromCompatibleForm(none)).to.equal(none);
    expect(blankApiKeys(`it says ${spelled}.`)).to.equal('it says e2b_[secret].');
  });

  it('has one known form', () => {
    // The checksum is the CRC-32 of what stands before it, in base 62, as computed by another tool.
    expect(
      formatApiKey({ keyId: 'abcdefghijkl', secret: '0123456789ABCDEFGHIJKLMNOPQRSTUV' }),
    ).to.equal('spk_abcdefghijkl_0123456789ABCDEFGHIJKLMNOPQRSTUV1WcqEV');
    for (const text of [
      '',
      'spk_',
      'spk__',
      'spk_short_short',
      `spk_${'a'.repeat(12)}_${'b'.repeat(10_000)}`,
      `x${formatApiKey({ keyId: 'a'.repeat(12), secret: 'b'.repeat(32) })}`,
    ]) {
      expect(parseApiKey(text)).to.equal(undefined);
    }
  });
});
