package replay

// validateLoad says what of the arrivals and limits cannot be.
func (c *Config) validateLoad() error {
	if err := c.Placing.Law.Validate(); err != nil {
		return err
	}
	return c.Placing.Law.Fits(c.Placing.Count)
}
