import type { SandboxEvent } from '../../machines/sandbox/events.ts';

/**
 * Describes what moves a sandbox: an event, that it was ordered, that it was found, or that its
 * machine threw.
 */
export type SandboxHappened = SandboxEvent | { readonly type: 'ORDERED' | 'FOUND' | 'THREW' };

/**
 * Tells what brought it, in a few words of which there are few: never an id, a time, or anybody's
 * text.
 */
export const sandboxCauseOf = (event: SandboxHappened): string => {
  switch (event.type) {
    case 'FACT':
      return `record ${event.fact.record?.state ?? 'gone'}, process ${event.fact.vitals.kind}`;
    case 'END':
    case 'EXPIRED':
      return event.reason;
    case 'ORDERED':
      return 'its pool asked for it';
    case 'FOUND':
      return 'the driver reported it';
    case 'CLAIM':
      return 'a request';
    default:
      return '';
  }
};
